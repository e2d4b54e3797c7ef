"""Which contexts of the kubeconfig are meant."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dyninformer import ConfigError
from dyninformer.fleet.contexts import GONE_LOOKS, Contexts, Servers
from dyninformer.threads import Flag
from tests.fleet.clusters import kubeconfig

URL = "https://127.0.0.1:1"


def test_patterns_are_over_the_contexts_of_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kubectl merges them; each is one of the shell's, or a name."""
    files = [
        kubeconfig(tmp_path / "a", **{"eu-1": URL, "us-1": URL}),
        kubeconfig(tmp_path / "b", **{"eu-2": URL}),
    ]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, files)))
    assert list(Contexts("eu-*", None).first()) == ["eu-1", "eu-2"]
    assert Contexts(["us-1", "eu-2"], None).first() == {"us-1": URL, "eu-2": URL}


def test_a_change_is_seen_until_it_has_been_read(tmp_path: Path) -> None:
    """Also that of a file that came only now."""
    path = kubeconfig(tmp_path / "config", eu=URL)
    contexts = Contexts("*", path)
    contexts.first()
    assert not contexts.changed()
    kubeconfig(path, eu=URL, us=URL)
    assert contexts.changed()
    assert list(contexts.found()) == ["eu", "us"]
    assert not contexts.changed()
    path.unlink()
    assert contexts.changed()
    with pytest.raises(ConfigError, match="no such file"):
        contexts.found()
    assert contexts.changed()


def test_a_pod_has_no_contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error lists what was looked for, and not the pod's account."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match=r"found no kubeconfig\. Looked for") as caught:
        Contexts("*", None).first()
    assert "in-cluster" not in str(caught.value)


def test_no_pattern_is_none_at_all() -> None:
    """It would mean nothing."""
    with pytest.raises(ValueError, match=r"contexts is empty: give names"):
        Contexts([], None)


class _Looks(Flag):
    """Stands for the time between two looks: what is given is done in it, and then it ends."""

    def __init__(self, *meanwhile: Callable[[], object]) -> None:
        super().__init__()
        self._meanwhile = list(meanwhile)

    def wait(self, timeout: float | None = None) -> bool:
        if not self._meanwhile:
            return True
        self._meanwhile.pop(0)()
        return False


def test_a_file_that_vanishes_for_a_moment_takes_no_cluster_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of several, as an editor writes it; one that is listed no more takes its own."""
    kept, written = kubeconfig(tmp_path / "a", eu=URL), kubeconfig(tmp_path / "b", us=URL)
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, [kept, written])))
    contexts = Contexts("*", None)
    assert list(contexts.first()) == ["eu", "us"]
    written.rename(tmp_path / "aside")
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"b is gone"):
            contexts.found()
    (tmp_path / "aside").rename(written)
    assert list(contexts.found()) == ["eu", "us"]
    monkeypatch.setenv("KUBECONFIG", str(kept))
    written.unlink()
    assert list(contexts.found()) == ["eu"]


def test_a_file_that_stays_away_takes_its_clusters_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After ten looks; the other files are followed from then on, as before."""
    kept, gone = kubeconfig(tmp_path / "a", eu=URL), kubeconfig(tmp_path / "b", us=URL)
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, [kept, gone])))
    contexts = Contexts("*", None)
    contexts.first()
    taken: list[Servers] = []
    looked: list[int] = []
    looks = _Looks(
        gone.unlink,
        *[lambda: looked.append(len(taken))] * (GONE_LOOKS + 1),
        lambda: kubeconfig(kept, eu=URL, asia=URL),
        lambda: None,
        lambda: kubeconfig(gone, us=URL),
        lambda: None,
    )
    contexts.follow(taken.append, looks)
    assert looked == [0] * (GONE_LOOKS + 1)  # nothing was taken at any of these looks before
    assert list(map(list, taken)) == [["eu"], ["eu", "asia"], ["eu", "asia", "us"]]


def test_a_file_that_is_half_written_takes_no_cluster_away(tmp_path: Path) -> None:
    """What was written since the look before is not read before it has stayed as it is."""
    names = dict.fromkeys(("a", "b", "c"), URL)
    path = kubeconfig(tmp_path / "config", **names)
    whole = kubeconfig(tmp_path / "other", **names, d=URL).read_text()
    contexts = Contexts("*", path)
    contexts.first()
    half = kubeconfig(tmp_path / "less", a=URL).read_text()
    taken: list[Servers] = []
    looks = _Looks(
        lambda: path.write_text(half),
        lambda: path.write_text(whole),
        lambda: None,
        lambda: None,
    )
    contexts.follow(taken.append, looks)
    assert list(map(list, taken)) == [["a", "b", "c", "d"]]


def test_looks_at_which_a_file_is_away_are_counted_anew_when_it_is_back(tmp_path: Path) -> None:
    """A directory that is mounted now and then loses no cluster over the days."""
    kept, other = kubeconfig(tmp_path / "a", eu=URL), kubeconfig(tmp_path / "b", us=URL)
    away = tmp_path / "away"
    contexts = Contexts("*", os.pathsep.join(map(str, [kept, other])))
    contexts.first()
    taken: list[Servers] = []
    turn: list[Callable[[], object]] = [
        lambda: other.rename(away),
        *[lambda: None] * 3,
        lambda: away.rename(other),
        lambda: None,
    ]
    contexts.follow(taken.append, _Looks(*turn * GONE_LOOKS))
    assert taken == []
