"""The benchmarks run; what they measure is for people to read."""

from __future__ import annotations

import subprocess
import sys

from tests.documents import ROOT


def test_the_informer_benchmark_runs_and_prints_a_figure_for_every_bar() -> None:
    """A small run goes through all phases with our cache and the one written by hand."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_informer", "--quick"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [line.split("|") for line in done.stdout.splitlines() if line.startswith("| ")]
    measured = {row[1].strip(): row[2].strip() for row in rows[1:]}
    assert len(measured) == 13
    assert all(measured.values()), measured
