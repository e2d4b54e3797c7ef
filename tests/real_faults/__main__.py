"""Faults on a real API server: ``python -m tests.real_faults --seconds 180 --seed 7``.

The schedule of a seed is always the same; ``--rounds`` runs some of it. The programs are those
that KUBEBUILDER_ASSETS names.
"""

from __future__ import annotations

import argparse
import resource
import secrets
import sys
import time
from itertools import islice

from dyninformer.testing.control_plane import ControlPlaneError
from tests.real_faults.rig import RATE, LostError, Rig
from tests.real_faults.schedule import schedule

LONG_RUN = 600
"""Seconds from which on a run has time for faults that take more than a minute."""


def main() -> None:
    """Rounds until the time is over, a line of each; 1 if something was lost."""
    arguments = argparse.ArgumentParser(prog="python -m tests.real_faults", description=__doc__)
    arguments.add_argument("--seconds", type=float, default=180)
    arguments.add_argument("--seed", type=int, default=secrets.randbelow(100_000) + 1)
    arguments.add_argument("--rounds", help="those alone, as 3 or 3-7, however long they take")
    chosen = arguments.parse_args()
    try:
        found = run(chosen.seed, chosen.seconds, chosen.rounds)
    except ControlPlaneError as error:
        sys.exit(str(error))
    sys.exit(not found)


def run(seed: int, seconds: float, rounds: str | None = None) -> bool:
    """Whether nothing was lost."""
    first, _, last = (rounds or "1-1000000").partition("-")
    planned = islice(
        enumerate(schedule(seed, long=seconds >= LONG_RUN), 1), int(first) - 1, int(last or first)
    )
    print(f"seed {seed}, {RATE} writes a second, {seconds:g} s", flush=True)
    with Rig(seed) as rig:
        end = time.monotonic() + seconds
        done = 0
        for number, each in planned:
            print(f"{number:3} {each}", flush=True)
            try:
                print(f"    {rig.run(each)}", flush=True)
            except LostError as error:
                print(f"    LOST: {error}", *rig.complaints.last, sep="\n    ", flush=True)
                print(f"again: python -m tests.real_faults --seconds {seconds:g} --seed {seed}")
                return False
            done += 1
            if rounds is None and time.monotonic() > end:
                break
        rig.close()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{done} rounds, nothing lost; {most} MB at most", flush=True)
    return True


if __name__ == "__main__":
    main()
