"""Install a wheel without extras into an empty environment, and run the README's first script."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

from dyninformer.testing import ApiServer
from tests.documents import README, ROOT, snippets


def strangers(wheel: Path) -> list[str]:
    """What is in a wheel and not of the package; what should be and is not has a minus."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(
        ["git", "ls-files", "dyninformer"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    return sorted([*(names - set(tracked)), *(f"-{name}" for name in set(tracked) - names)])


def try_out(wheel: Path, folder: Path) -> str:
    """What the README's first script prints, run in an environment that has this wheel alone."""
    script = next(snippet for snippet in snippets() if snippet.page == README)
    venv.create(folder / "venv", with_pip=True, symlinks=True)
    python = str(folder / "venv" / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(wheel)], check=True)
    with ApiServer() as server:
        server.install(ROOT / "examples" / "crd")
        kubeconfig = server.kubeconfig(folder / "kubeconfig")
        ran = subprocess.run(
            [python, "-W", "error", "-c", script.source],
            cwd=folder,
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    if ran.returncode:
        sys.exit(f"the README's first script failed:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def main(wheel: Path) -> None:
    """Exit with 1, and say why, if a user would not get what the README promises."""
    if found := strangers(wheel):
        sys.exit(f"{wheel.name} does not hold the package as it is in git: {', '.join(found)}")
    with tempfile.TemporaryDirectory() as folder:
        printed = try_out(wheel, Path(folder))
    if "ADDED prod/shop" not in printed.splitlines():  # what it prints last, in its own thread
        sys.exit(f"the README's first script did not tell of the certificates, but:\n{printed}")
    print(f"{wheel.name}, {wheel.stat().st_size // 1000} kB: the README's first script runs on it")


if __name__ == "__main__":
    main(*(Path(argument).resolve() for argument in sys.argv[1:]))
