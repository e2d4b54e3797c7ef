"""What ``dyninformer --help`` costs, beside a typer app that does nothing.

Run as ``python -m benchmarks.bench_help``. Each is a process of its own, in turn; the figure
is CPU time, and the best round of each counts. The bar is 1.5 times.
"""

from __future__ import annotations

import resource
import subprocess
import sys

ROUNDS = 15

BARE = """
import typer
app = typer.Typer()
@app.command()
def get(): "Show objects, once."
@app.command()
def watch(): "Show what changes."
app()
"""
OURS = "from dyninformer.cli.main import main; main()"


def cost(script: str) -> float:
    """CPU seconds of one process that shows its help."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", script, "--help"], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print both, and their ratio."""
    rounds = [(cost(BARE), cost(OURS)) for _ in range(ROUNDS)]
    bare, ours = (min(each) for each in zip(*rounds, strict=True))
    print(f"a bare typer app's --help   {bare * 1000:6.0f} ms of CPU")
    print(f"dyninformer --help          {ours * 1000:6.0f} ms of CPU")
    print(f"ratio                       {ours / bare:6.2f}   (bar: 1.5)")


if __name__ == "__main__":
    main()
