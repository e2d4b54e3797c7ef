"""A thousand informers of one factory: what they take, and how long they take to start.

Run as ``python -m benchmarks.bench_thousand [namespaces|crds] [--count 1000] [--real] [--relay]``,
beside as many plain lists, each on a connection of its own and all at once, which is as quick as
the server gets, and, where Go is installed, as many informers of client-go. Each is a process of
its own, and so is the server: the embedded one, or a real one (KUBEBUILDER_ASSETS), with
``--relay`` behind a proxy that passes bytes on.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.bench_informer import HERE, python, table
from benchmarks.bench_load import Program, program

Answer = dict[str, Any]
_ROUNDS = 3
HEAD = ["", "start (s)", "CPU (s)", "MB before", "after", "at rest", "threads", "files",
        "CPU of 5 s", "server's MB before", "after", "files", "relay's MB", "files"]  # fmt: skip


@contextmanager
def client(command: list[str], kubeconfig: str) -> Iterator[Program]:
    """A program that has connected."""
    environment = {**os.environ, "KUBECONFIG": kubeconfig}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, cwd=HERE.parent, env=environment
    ) as process:
        try:
            yield Program(process)
        finally:
            process.kill()


def lists(command: list[str], kubeconfig: str) -> str:
    """How long as many plain lists take."""
    with client(command, kubeconfig) as asking:
        found = [asking.ask("") for _ in range(_ROUNDS)]
    rounds = ", ".join(f"{each['seconds']:.2f} s ({each['cpu']:.2f} of CPU)" for each in found)
    return f"plain lists, rounds: {rounds}"


def informers(
    name: str, command: list[str], kubeconfig: str, server: Program, relay: Program | None
) -> list[str]:
    """A row of the table."""
    at_rest = server.ask("")
    with client(command, kubeconfig) as running:
        before, synced = running.first, running.ask("begin")
        there, between = server.ask(""), relay.ask("") if relay else {"rss": 0, "files": 0}
        later, end = running.ask("rest"), running.ask("end")
    if synced["troubles"]:
        print(f"{name}: {len(synced['troubles'])} characters: {synced['troubles'][:1500]}")
    print(f"{name}: shutdown in {end['seconds']:.2f} s, server's CPU meanwhile "
          f"{there['cpu'] - at_rest['cpu']:.2f} s")  # fmt: skip
    return [
        name, f"{synced['seconds']:.2f}", f"{synced['cpu']:.2f}", f"{before['rss']:.0f}",
        f"{synced['rss']:.0f}", f"{later['rss']:.0f}", f"{later['threads']:.0f}",
        f"{later['files']:.0f}", f"{later['cpu']:.2f}", f"{at_rest['rss']:.0f}",
        f"{there['rss']:.0f}", f"{there['files']:.0f}", f"{between['rss']:.0f}",
        f"{between['files']:.0f}",
    ]  # fmt: skip


def go_program(folder: str) -> str:
    """client-go's, compiled; "" without Go."""
    go = shutil.which("go")
    if go is None:
        return ""
    built = str(Path(folder, "clientgo"))
    subprocess.run([go, "build", "-o", built, "."], cwd=HERE / "clientgo", check=True)
    return built


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", nargs="?", default="namespaces", choices=["namespaces", "crds"])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--real", action="store_true", help="kube-apiserver, not the embedded one")
    parser.add_argument("--relay", action="store_true", help="a proxy in between")
    parser.add_argument("--files", type=int, help="the most files that a process may open")
    parser.add_argument("--slow", action="store_true", help="one of them never answers")
    parser.add_argument("--no-go", action="store_true", help="leave client-go out")
    given = parser.parse_args()
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        go = "" if given.no_go else go_program(folder)
        which = "real" if given.real else "embedded"
        with program("thousand_server", which, given.kind, given.count) as server:
            run(given, server, go, folder, rows)
    print(table([HEAD, *rows]))


def run(
    given: argparse.Namespace, server: Program, go: str, folder: str, rows: list[list[str]]
) -> None:
    """Measure all, one after the other."""
    kubeconfig, kind, count = str(server.first["kubeconfig"]), given.kind, str(given.count)
    if given.relay:
        with program("thousand_server", "relay", server.first["url"]) as relay:
            text = Path(kubeconfig).read_text()
            behind = Path(folder, "kubeconfig")
            behind.write_text(text.replace(server.first["url"], relay.first["url"]))
            ours = [*python("own_thousand"), "informers", kind, count]
            rows.append(informers("dyninformer", ours, str(behind), server, relay))
            if go:
                theirs = [go, "thousand", kind, count]
                rows.append(informers("client-go", theirs, str(behind), server, relay))
        return
    files = [str(given.files)] if given.files else []
    if not files:
        print(lists([*python("own_thousand"), "lists", kind, count], kubeconfig))
    if given.slow:
        server.ask("slow /api/v1/namespaces/team-0/configmaps")
    ours = [*python("own_thousand"), "informers", kind, count, *files]
    rows.append(informers("dyninformer", ours, kubeconfig, server, None))
    if go and not files:
        rows.append(informers("client-go", [go, "thousand", kind, count], kubeconfig, server, None))
        rows.append(informers("dyninformer, again", ours, kubeconfig, server, None))


if __name__ == "__main__":
    main()
