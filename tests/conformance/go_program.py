"""The Go program of clientgo/: built once for its sources, and talked to by lines."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import queue
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any, Self

from tests.conformance.wire import until

Report = dict[str, Any]
Reports = list[Report]

SOURCES = Path(__file__).parent / "clientgo"


def build() -> Path:
    """The program's binary, from the user's cache folder or built into it.

    LookupError where there is no Go, or no modules to be had; a program that does
    not compile is a CalledProcessError with the compiler's words.
    """
    go = shutil.which("go")
    if go is None:
        raise LookupError("needs Go (https://go.dev/dl): the command go is not on PATH")
    digest = hashlib.sha256()
    for source in sorted(SOURCES.glob("*")):
        digest.update(source.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dyninformer"
    binary = cache / f"clientgo-{digest.hexdigest()[:16]}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "clientgo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the other xdist workers wait for the first
        if not binary.exists():
            _compile(go, binary)
    return binary


def _compile(go: str, binary: Path) -> None:
    fetched = subprocess.run(
        [go, "mod", "download"], cwd=SOURCES, capture_output=True, text=True, check=False
    )
    if fetched.returncode:
        raise LookupError(f"needs client-go, and cannot have it: {fetched.stderr.strip()[-300:]}")
    new = binary.with_suffix(".new")
    command = [go, "build", "-buildvcs=false", "-ldflags=-s -w", "-o", str(new), "."]
    subprocess.run(command, cwd=SOURCES, check=True)
    new.replace(binary)


class GoProgram:
    """One run of the program: reports come in, lines go out."""

    def __init__(self, binary: Path, kubeconfig: Path, *args: str, watch_list: bool) -> None:
        self.requests: Reports = []
        """What it has asked of the server so far, in order."""
        self._reports: queue.Queue[Report] = queue.Queue()
        self._process = subprocess.Popen(
            [str(binary), *args],
            env={
                **os.environ,
                "KUBECONFIG": str(kubeconfig),
                "KUBE_FEATURE_WatchListClient": str(watch_list).lower(),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, name="clientgo reports", daemon=True)
        self._reader.start()

    def report(self, patience: float = 30) -> Report:
        """The next report that is not a request."""
        try:
            found = self._reports.get(timeout=patience)
        except queue.Empty:
            raise TimeoutError(f"the program has nothing to report for {patience} s") from None
        assert found["type"] != "FAILED", found
        return found

    def take(self, count: int) -> list[tuple[str, str]]:
        """(type, name) of the next reports."""
        return [(r["type"], r.get("name", "")) for r in (self.report() for _ in range(count))]

    def say(self, line: str) -> None:
        """Send a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def asked(self, **query: str) -> Reports:
        """The requests so far that have these parameters."""
        return [
            request
            for request in tuple(self.requests)
            if all(request["query"].get(name) == value for name, value in query.items())
        ]

    def until_asked_to_watch(self) -> None:
        """Wait until it has asked for a watch."""
        until(lambda: self.asked(watch="true"), 30)

    def until_asked_again(self, before: int, *, streaming: bool) -> None:
        """Wait until, after so many requests, it has asked for the whole state once more."""

        def again() -> bool:
            later = [request["query"] for request in tuple(self.requests)[before:]]
            return any(
                query.get("sendInitialEvents") == "true" if streaming else "watch" not in query
                for query in later
            )

        until(again, 30, self.requests)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = json.loads(line)
            if found["type"] == "REQUEST":
                self.requests.append(found)
            else:
                self._reports.put(found)
