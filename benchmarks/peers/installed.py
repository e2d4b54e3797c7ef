"""The programs of the peers, built or installed in this clone where that can be done."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.processes import Command

HERE = Path(__file__).parent
CLONE = HERE.parents[1]
BUILT = CLONE / "build" / "peers"
VENV = CLONE / ".venv-peers"
PAGED, STREAMED = "paged LIST", "WatchList"
MODES = (PAGED, STREAMED)
KIND = ("cert-manager.io", "v1", "Certificate", "certificates")
_PYTHON_PEERS = ("kubernetes==37.0.2", "kr8s==0.20.15")


class MissingError(Exception):
    """A peer cannot be had here; the message says why."""


@dataclass(frozen=True)
class Peer:
    """A program that is measured as processes.py says, in some modes."""

    name: str
    command: Callable[[str], Command]
    modes: tuple[str, ...] = MODES


def own() -> Peer:
    """This package, from the environment that this runs in."""
    return Peer("dyninformer", lambda mode: [sys.executable, "-m", "benchmarks.peers.own", mode])


def client_go() -> Peer:
    """client-go's dynamic informer."""
    go = _found("go", "https://go.dev/dl")
    program = BUILT / "client-go"
    _run([go, "build", "-buildvcs=false", "-o", str(program), "."], HERE.parent / "clientgo")
    return Peer("client-go", lambda mode: [str(program), "sync", mode])


def kube_rs() -> Peer:
    """kube-rs's reflector."""
    program = str(kube_rs_program())
    return Peer("kube-rs", lambda mode: [program, "sync", *KIND, mode])


def kube_rs_program() -> Path:
    """The program of kube-rs, built for minutes the first time."""
    cargo = _found("cargo", "https://rustup.rs")
    target = BUILT / "kube-rs"
    _run([cargo, "build", "--quiet", "--release", "--locked", "--target-dir", str(target)], RUST)
    return target / "release" / "kube-rs-peer"


RUST = HERE / "kube-rs"


def fabric8() -> Peer:
    """fabric8's informer."""
    maven, java = _found("mvn", "https://maven.apache.org"), _found("java", "a JDK, 17 or later")
    target = BUILT / "fabric8"
    build = [maven, "-q", "-B", f"-Dpeer.directory={target}", "package"]
    copy = ["dependency:copy-dependencies", f"-DoutputDirectory={target / 'lib'}"]
    _run([*build, *copy], HERE / "fabric8")
    command = [java, "-cp", f"{target / 'classes'}:{target / 'lib'}/*", "Peer", *KIND]
    return Peer("fabric8", lambda mode: [*command, mode], (PAGED,))


def official() -> Peer:
    """The official Python client."""
    return _python_peer("official client", "official")


def kr8s() -> Peer:
    """kr8s."""
    return _python_peer("kr8s", "kr8s_objects")


PEERS: Mapping[str, Callable[[], Peer]] = {
    "dyninformer": own,
    "client-go": client_go,
    "kube-rs": kube_rs,
    "fabric8": fabric8,
    "official": official,
    "kr8s": kr8s,
}


def installed(names: list[str]) -> list[Peer]:
    """Those that can be had; of the others it is said why not."""
    found = []
    for name in names:
        print(f"{name}: being built or installed, if need be ...", file=sys.stderr, flush=True)
        try:
            found.append(PEERS[name]())
        except MissingError as missing:
            print(f"{name} is left out: {missing}", flush=True)
    return found


def _python_peer(name: str, module: str) -> Peer:
    python = VENV / "bin" / "python"
    if not python.exists():
        venv.create(VENV, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, *_PYTHON_PEERS], CLONE)
    return Peer(name, lambda _: [str(python), "-m", f"benchmarks.peers.{module}"], (PAGED,))


def _found(command: str, where: str) -> str:
    found = shutil.which(command)
    if found is None:
        raise MissingError(f"there is no {command} on PATH ({where})")
    return found


def _run(command: Command, folder: Path) -> None:
    BUILT.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        words = " ".join((done.stdout + done.stderr).split())
        raise MissingError(f"{' '.join(command[:3])} ... failed: {words[:400]}")
