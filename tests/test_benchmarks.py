"""The benchmarks run; what they measure is for people to read."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks import bench_hostile as hostile
from benchmarks.peers.installed import installed
from dyninformer.transport.document import LARGEST_DOCUMENT
from dyninformer.watching.cutting import LONGEST_OBJECT
from tests.documents import ROOT


def ran(*command: str, real: bool = False) -> str:
    """What a benchmark prints, where no real server is, unless it is to have one."""
    environment = dict(os.environ)
    if not real:
        environment.pop("KUBEBUILDER_ASSETS", None)
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_informer_benchmark_runs_and_prints_a_figure_for_every_bar() -> None:
    """A small run goes through all phases with our cache and the one written by hand."""
    printed = ran("benchmarks.bench_informer", "--quick")
    rows = [line.split("|") for line in printed.splitlines() if line.startswith("| ")]
    measured = {row[1].strip(): row[2].strip() for row in rows[1:]}
    assert len(measured) == 13
    assert all(measured.values()), measured


def test_the_benchmark_of_get_runs() -> None:
    """On the embedded server it has nothing to compare with, and says so."""
    printed = ran("benchmarks.bench_get", "--quick")
    assert "KUBEBUILDER_ASSETS is not set" in printed
    assert len([line for line in printed.splitlines() if line.startswith("| 200, ")]) == 3


def test_the_benchmark_of_fleets_runs() -> None:
    """One round prints the ratios of seconds and of CPU."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_fleet", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ratio of") == 4


def test_the_benchmark_of_event_loops_runs_and_needs_no_thread_for_a_wait() -> None:
    """A small run prints every figure."""
    printed = ran("benchmarks.bench_aio", "20", "1000", "0.1")
    assert printed.count("\n| ") >= 5
    assert "Threads for the waits, the stream and the handler: 0." in printed


def test_the_benchmark_of_load_runs_and_what_was_told_is_what_is_held() -> None:
    """A small run of slow handlers, many and churn; without a real server it restarts none."""
    printed = ran("benchmarks.bench_load", "--quick")
    assert "KUBEBUILDER_ASSETS is not set" in printed
    assert printed.count(" yes |") == 6
    assert "NO" not in printed.split()


@pytest.mark.real
def test_the_benchmark_of_peers_runs_beside_curl_in_both_ways_to_list() -> None:
    """A small run of ours alone, which needs nothing built, prints a line of each in each table."""
    output = ran("benchmarks.peers", "dyninformer", "--objects=700", "--rounds=1", real=True)
    rows = [line.split("|") for line in output.splitlines() if line.startswith("| ")]
    assert [row[1].strip() for row in rows] == ["", "curl", "dyninformer"] * 2
    assert all(float(row[3]) > 0 for row in rows if row[1].strip())


def test_a_peer_that_cannot_be_built_is_left_out_and_it_is_said_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where there is neither Go nor Rust nor Java, the others are measured all the same."""
    monkeypatch.setenv("PATH", "")
    found = installed(["dyninformer", "client-go", "kube-rs", "fabric8"])
    assert [peer.name for peer in found] == ["dyninformer"]
    assert capsys.readouterr().out.splitlines() == [
        "client-go is left out: there is no go on PATH (https://go.dev/dl)",
        "kube-rs is left out: there is no cargo on PATH (https://rustup.rs)",
        "fabric8 is left out: there is no mvn on PATH (https://maven.apache.org)",
    ]


def measured(part: str) -> list[dict[str, str]]:
    """A part of the benchmark of load, as large as it is: its table, row by row."""
    printed = ran("benchmarks.bench_load", part)
    lines = [line for line in printed.splitlines() if line.startswith("|")]
    head, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_memory_after_ten_minutes_of_churn_is_what_it_was_after_one() -> None:
    """100,000 objects that change, go, and are replaced by others of new names."""
    (row,) = measured("churn")
    assert float(row["of that after a minute"]) <= 1.05
    assert row["told what is held"] == "yes"


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_s20_a_handler_too_slow_for_a_minute_of_load_costs_what_its_bound_allows() -> None:
    """Merged it is little, else it grows and shows; either way it is told what is held."""
    coalescing, bounded, unbounded = measured("slow")
    for row, most in (coalescing, 10_001), (bounded, 20_001):  # with a first state of 10,000
        assert float(row["most"]) - float(row["RSS before (MB)"]) <= 40
        assert int(row["longest backlog"].replace(",", "")) <= most
    assert int(bounded["overflows"]) >= 1
    assert int(bounded["warnings"]) >= 1
    assert int(unbounded["longest backlog"].replace(",", "")) > 100_000
    assert int(unbounded["warnings"]) >= 2
    assert {row["told what is held"] for row in (coalescing, bounded, unbounded)} == {"yes"}


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


def test_the_benchmark_of_frames_runs() -> None:
    """Its peer makes the same columns of a few objects."""
    pytest.importorskip("polars")
    printed = ran("benchmarks.bench_frames", "50")
    assert "to_frame" in printed
