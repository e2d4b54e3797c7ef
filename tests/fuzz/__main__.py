"""Fuzz: ``python -m tests.fuzz [TARGET ...] --seconds 60 --jobs 2``.

With atheris each target is led by which of the package's lines it reaches; where that is not
installed, hypothesis changes the corpus at random. What breaks a promise is kept as a file, for the
corpus to have once it is mended.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.fuzz.corpus import FOUND, seeds, tokens

LONGEST: Final = 2048
WITH_ATHERIS: Final = importlib.util.find_spec("atheris") is not None


def main() -> None:
    """Run every target in a process of its own; 1 if one of them failed."""
    known = sorted(each.name for each in (Path(__file__).parent / "corpus").iterdir())
    arguments = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    arguments.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(known))
    arguments.add_argument("--seconds", type=int, default=60, help="for each target")
    arguments.add_argument("--jobs", type=int, default=2, help="so many targets at a time")
    arguments.add_argument("--seed", type=int, default=secrets.randbelow(2**31) + 1)
    arguments.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    targets = chosen.targets or known
    if unknown := set(targets) - set(known):
        arguments.error(f"there is no target {min(unknown)!r}; there are {', '.join(known)}")
    if chosen.alone:
        logging.disable()
        (_led if WITH_ATHERIS else _at_random)(targets[0], chosen.seconds, chosen.seed)
        return
    by = "atheris" if WITH_ATHERIS else "hypothesis (atheris is not installed)"
    print(f"{chosen.seconds} s each by {by}, seed {chosen.seed}", flush=True)
    with ThreadPoolExecutor(chosen.jobs) as pool:
        ended = list(pool.map(lambda each: _one(each, chosen.seconds, chosen.seed), targets))
    sys.exit(not all(ended))


def _one(target: str, seconds: int, seed: int) -> bool:
    """Run a target to its end, and say how that was."""
    command = [sys.executable, "-m", "tests.fuzz", target, "--alone"]
    command += ["--seconds", str(seconds), "--seed", str(seed)]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONHASHSEED": "0"},  # so that a seed is the same run again
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    lines = done.stdout.splitlines()
    runs = [line for line in lines if line.startswith(("Done ", "stat::number_of_executed"))]
    if done.returncode == 0 and runs:
        print(f"ok      {target}: {runs[0]}", flush=True)
        return True
    print(f"FAILED  {target}, exit code {done.returncode}:", *lines[-60:], sep="\n", flush=True)
    return False


def _led(target: str, seconds: int, seed: int) -> None:
    """By what is reached. atheris ends the process itself."""
    import atheris

    with atheris.instrument_imports(include=["dyninformer"]):
        from tests.fuzz.targets import TARGETS, lower_limits

    lower_limits()
    FOUND.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fuzz-corpus") as fresh:
        names = Path(fresh, "tokens")
        words = ("".join(f"\\x{byte:02x}" for byte in each) for each in tokens(target))
        names.write_text("".join(f'"{word}"\n' for word in words))
        options = [
            f"-max_total_time={seconds}",
            f"-max_len={LONGEST}",
            f"-seed={seed}",
            "-timeout=10",
            f"-artifact_prefix={FOUND}/{target}-",
            f"-dict={names}",
            "-verbosity=0",
            "-print_final_stats=1",
        ]
        folder = str(Path(__file__).parent / "corpus" / target)
        atheris.Setup([sys.argv[0], *options, fresh, folder], TARGETS[target])
        atheris.Fuzz()


def _at_random(target: str, seconds: int, seed: int) -> None:
    """By changes of the corpus, over and over."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    from tests.fuzz.targets import TARGETS, lower_limits
    from tests.mutated import mutated

    lower_limits()
    runs, end = 0, time.monotonic() + seconds
    for round_ in _until(end):

        @seeded(seed + round_)
        @settings(
            max_examples=200,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(mutated(seeds(target), tokens(target)))
        def each(data: bytes) -> None:
            nonlocal runs
            runs += 1
            TARGETS[target](data[:LONGEST])

        each()
    print(f"Done {runs} runs in {seconds} second(s)")


def _until(end: float) -> Iterator[int]:
    round_ = 0
    while time.monotonic() < end:
        yield round_
        round_ += 1


if __name__ == "__main__":
    main()
