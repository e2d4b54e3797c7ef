"""What the README and docs/ show is run as it stands there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dyninformer.testing import ApiServer
from dyninformer.testing.control_plane import ControlPlane
from tests.documents import README, ROOT, Snippet, snippets

EXAMPLES = ROOT / "examples" / "crd"


SCRIPTS = [snippet for snippet in snippets() if not snippet.is_test]


def run(snippet: Snippet, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a script as a stranger would, in a folder of its own."""
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    monkeypatch.setenv(
        "PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    monkeypatch.chdir(kubeconfig.parent)
    exec(snippet.code(), {"__name__": "__main__"})  # type: ignore[arg-type]


@pytest.mark.parametrize("snippet", SCRIPTS, ids=str)
def test_a_snippet_runs_as_it_is_written(
    snippet: Snippet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snippet runs against a cluster that has the example CRDs and objects."""
    with ApiServer() as server:
        server.install(EXAMPLES)
        run(snippet, server.kubeconfig(tmp_path / "kubeconfig"), monkeypatch)


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """A real one."""
    with ControlPlane() as started:
        yield started


@pytest.mark.real
@pytest.mark.parametrize("snippet", [s for s in SCRIPTS if s.page == README], ids=str)
def test_a_snippet_of_the_readme_runs_on_a_real_server(
    snippet: Snippet, control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same cluster, of etcd and kube-apiserver."""
    control_plane.reset()
    control_plane.install(EXAMPLES)
    run(snippet, control_plane.kubeconfig(tmp_path / "kubeconfig"), monkeypatch)


@pytest.mark.parametrize("snippet", [s for s in snippets() if s.is_test], ids=str)
def test_a_snippet_of_tests_passes(snippet: Snippet, pytester: pytest.Pytester) -> None:
    """A snippet that defines tests passes under a plain pytest with the plugin installed."""
    (pytester.path / "examples").symlink_to(ROOT / "examples")
    pytester.makepyfile(snippet.source)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    outcomes = result.parseoutcomes()
    assert outcomes.get("passed", 0) >= 1
    assert set(outcomes) <= {"passed", "warnings"}
