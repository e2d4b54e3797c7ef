"""examples/explore.ipynb runs, on the cluster that make notebook puts behind it."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.documents import ROOT

pytest.importorskip("nbclient")
pytest.importorskip("matplotlib")
pytest.importorskip("anywidget")

NOTEBOOK = ROOT / "examples" / "explore.ipynb"
Cell = dict[str, Any]


def kinds(cell: Cell) -> set[str]:
    """What a cell shows: the types of its outputs, and the streams that it prints to."""
    return {kind for each in cell["outputs"] for kind in each.get("data", {each.get("name"): ""})}


def test_jupyterlab_starts_for_root_too(tmp_path: Path) -> None:
    """JupyterLab refuses root, as in a container, unless it is told to allow that."""
    (tmp_path / "jupyterlab.py").write_text("import sys; print(sys.argv[1:], flush=True)")
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "notebook.py", "--", "--no-browser"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    root = ["--allow-root"] if os.geteuid() == 0 else []
    assert done.stdout.splitlines()[-1] == str([*root, "--no-browser", str(NOTEBOOK)])


@pytest.mark.timeout(240)
def test_every_cell_runs_and_shows_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No cell fails, and the outputs that are kept in it are of the kinds that come of it."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path))
    example = runpy.run_path(str(ROOT / "examples" / "notebook.py"))
    kept = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    with example["busy_cluster"]() as environment:
        ran = example["run"](NOTEBOOK, environment).cells
    code = [(was, now) for was, now in zip(kept, ran, strict=True) if was["cell_type"] == "code"]
    assert len(code) > 12
    for was, now in code:
        assert kinds(was) == kinds(now), "".join(was["source"])
