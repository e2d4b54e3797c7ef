"""The benchmarks run; what they measure is for people to read."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks import bench_hostile as hostile
from dyninformer.watching.cutting import LONGEST_OBJECT
from dyninformer.watching.document import LARGEST_DOCUMENT
from tests.documents import ROOT


def test_the_informer_benchmark_runs_and_prints_a_figure_for_every_bar() -> None:
    """A small run goes through all phases with our cache and the one written by hand."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_informer", "--quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split("|") for line in done.stdout.splitlines() if line.startswith("| ")]
    measured = {row[1].strip(): row[2].strip() for row in rows[1:]}
    assert len(measured) == 13
    assert all(measured.values()), measured


def test_the_benchmark_of_get_runs() -> None:
    """On the embedded server it has nothing to compare with, and says so."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_get", "--quick"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "KUBEBUILDER_ASSETS"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "KUBEBUILDER_ASSETS is not set" in done.stdout
    assert len([line for line in done.stdout.splitlines() if line.startswith("| 200, ")]) == 3


def test_the_benchmark_of_event_loops_runs_and_needs_no_thread_for_a_wait() -> None:
    """A small run prints every figure."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_aio", "20", "1000", "0.1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n| ") >= 5
    assert "Threads for the waits, the stream and the handler: 0." in done.stdout


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("event of wide text", LONGEST_OBJECT),
        ("list of quotes", LONGEST_OBJECT),
        ("gzip bomb", LONGEST_OBJECT),
        ("document of pairs", LARGEST_DOCUMENT),
    ],
)
def test_s32_what_is_refused_costs_no_more_than_thrice_its_limit(name: str, limit: int) -> None:
    """Nothing hostile takes more at any moment, it is given back, and a stop is heard meanwhile."""
    found = hostile.measured(name)
    assert found["refused"] >= 1
    assert found["peak"] * hostile.MIB <= 3 * limit
    assert found["kept"] * hostile.MIB <= limit
    assert found["ended"]
    assert found["work"] < 1.0  # CPU time until the stop was heard, whatever else the machine does
