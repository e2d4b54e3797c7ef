"""``dyninformer count``."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from dyninformer.testing import ApiServer
from tests.cli.conftest import Run

_DRAWING = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def certificate(name: str, issuer: str) -> dict[str, object]:
    """A certificate in prod."""
    return {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": name, "namespace": "prod"},
        "spec": {"secretName": name, "dnsNames": ["a.b"], "issuerRef": {"name": issuer}},
    }


def test_groups_are_counted_once_where_nobody_looks(run: Run) -> None:
    """Equal counts stand in the order of their values."""
    result = run("count", "certificates", "-A", "--by", ".spec.issuerRef.name")
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["COUNT", "ISSUERREF.NAME"], ["1", "internal-ca"], ["1", "letsencrypt"],
    ]  # fmt: skip


def test_several_paths_make_groups_of_all_their_values(run: Run) -> None:
    """What is not there is a value, too; without a path it is the namespace."""
    result = run(
        "count",
        "cert",
        "-A",
        "--no-headers",
        "--by",
        ".metadata.namespace",
        "--by",
        ".spec.nothing",
    )
    assert result.stdout.split() == ["2", "prod", "<none>"]
    assert run("count", "cert", "-A", "--no-headers").stdout.split() == ["2", "prod"]


def test_a_path_that_cannot_be_read_is_wrong_usage(run: Run) -> None:
    """Before anything is asked."""
    assert run("count", "cert", "--by", "{.spec").exit_code == 2


def test_on_a_terminal_the_table_follows_the_cluster_until_it_is_interrupted(
    server: ApiServer, kubeconfig: Path
) -> None:
    """An object that changes its group leaves the old one; Ctrl-C ends with 130."""
    terminal, inside = pty.openpty()
    command = [sys.executable, "-m", "dyninformer.cli.main", "count", "cert", "-n", "prod"]
    with subprocess.Popen(
        [*command, "--by", ".spec.issuerRef.name"],
        stdin=inside, stdout=inside, stderr=inside, start_new_session=True,
        env={**os.environ, "KUBECONFIG": str(kubeconfig), "TERM": "xterm", "COLUMNS": "80"},
    ) as process:  # fmt: skip
        os.close(inside)
        try:
            _await(terminal, r"1 +letsencrypt")
            server.create(certificate("third", "letsencrypt"))
            _await(terminal, r"2 +letsencrypt")
            server.delete("certificates/third", "prod")
            _await(terminal, r"1 +letsencrypt")
            process.send_signal(signal.SIGINT)
            _drain(terminal)
            assert process.wait(30) == 130
        finally:
            process.kill()
            os.close(terminal)


def _await(terminal: int, pattern: str) -> None:
    """Read what is drawn until it has the pattern, in what was drawn since the last call."""
    seen = ""
    until = time.monotonic() + 30
    while not re.search(pattern, _DRAWING.sub("", seen)):
        ready, _, _ = select.select([terminal], [], [], max(0.0, until - time.monotonic()))
        assert ready, f"{pattern} never came: {seen!r}"
        seen += os.read(terminal, 65536).decode("utf-8", "replace")


def _drain(terminal: int) -> None:
    """Read to the end: the other side has closed."""
    while True:
        try:
            if not os.read(terminal, 65536):
                return
        except OSError:  # how Linux says it
            return
