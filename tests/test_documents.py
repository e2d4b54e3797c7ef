"""What the README and docs/ show is run as it stands there."""

from __future__ import annotations

from pathlib import Path

import pytest

from dyninformer.testing import ApiServer
from tests.documents import ROOT, Snippet, snippets

EXAMPLES = ROOT / "examples" / "crd"


@pytest.mark.parametrize("snippet", [s for s in snippets() if not s.is_test], ids=str)
def test_a_snippet_runs_as_it_is_written(
    snippet: Snippet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snippet runs against a cluster that has the example CRDs and objects."""
    with ApiServer() as server:
        server.install(EXAMPLES)
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path / "kubeconfig")))
        monkeypatch.chdir(tmp_path)
        exec(snippet.code(), {"__name__": "__main__"})  # type: ignore[arg-type]


@pytest.mark.parametrize("snippet", [s for s in snippets() if s.is_test], ids=str)
def test_a_snippet_of_tests_passes(snippet: Snippet, pytester: pytest.Pytester) -> None:
    """A snippet that defines tests passes under a plain pytest with the plugin installed."""
    (pytester.path / "examples").symlink_to(ROOT / "examples")
    pytester.makepyfile(snippet.source)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    outcomes = result.parseoutcomes()
    assert outcomes.get("passed", 0) >= 1
    assert set(outcomes) <= {"passed", "warnings"}
