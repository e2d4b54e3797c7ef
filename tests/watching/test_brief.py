"""Documents asked for on the calling thread, with what Python has."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from dyninformer.errors import StoppedError, UnreachableError
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import BlackHole, RawAnswer, Refuse, Reset, Truncate
from dyninformer.transport.config import Environment, KubeconfigFiles, Overrides
from dyninformer.transport.requests import BrokenAnswerError, SilentError
from dyninformer.watching.brief import BriefSource
from dyninformer.watching.client import Source
from tests.transport.wires import Background, eventually, kubeconfig, listening, serving

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


def asking(config: Path, overrides: Overrides | None = None) -> BriefSource:
    """A source of what a kubeconfig says, which is plain."""
    place = KubeconfigFiles((str(config),))
    found = BriefSource.of(Environment(place, overrides or Overrides()))
    assert found is not None
    return found


@pytest.fixture
def source(server: ApiServer, tmp_path: Path) -> BriefSource:
    """Of the embedded server."""
    return asking(server.kubeconfig(tmp_path / "config"))


def test_a_document_is_asked_for_without_the_official_client(tmp_path: Path) -> None:
    """Nor urllib3: over TLS and with a token, as the kubeconfig has them."""
    with ApiServer(tls=True) as server:
        config = server.kubeconfig(tmp_path / "config")
        script = (
            "import sys; from dyninformer.watching.brief import BriefSource\n"
            "from dyninformer.transport.config import Environment, KubeconfigFiles\n"
            "source = BriefSource.of(Environment(KubeconfigFiles((sys.argv[1],))))\n"
            "print(source.get_json('/version').status)\n"
            "source.close()\n"
            "print({'kubernetes', 'urllib3'} & set(sys.modules))"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(config)], capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == ["200", "set()"]


def test_a_certificate_that_is_not_trusted_is_refused(tmp_path: Path) -> None:
    """Verification is what the official client would do, not less."""
    with ApiServer(tls=True) as server:
        config = server.kubeconfig(tmp_path / "config")
        said = yaml.safe_load(config.read_text())
        cluster = said["clusters"][0]["cluster"]
        cluster.pop("certificate-authority", None)
        another = trustme.CA().cert_pem.bytes()
        cluster["certificate-authority-data"] = base64.b64encode(another).decode()
        config.write_text(yaml.safe_dump(said))
        with pytest.raises(UnreachableError, match=r"(?i)certificate is not trusted"):
            asking(config).get_json("/version")


def test_another_name_of_the_server_can_be_verified(tmp_path: Path) -> None:
    """As kubectl's --tls-server-name has it."""
    with ApiServer(tls=True) as server:
        config = server.kubeconfig(tmp_path / "config")
        for name, fits in (("localhost", True), ("elsewhere.test", False)):
            source = asking(config, Overrides(tls_server_name=name))
            if fits:
                assert source.get_json("/version").status == 200
            else:
                with pytest.raises(UnreachableError, match="not trusted"):
                    source.get_json("/version")
            source.close()


def test_a_query_and_headers_are_sent(server: ApiServer, source: BriefSource) -> None:
    """With whom to act as, repeated headers too."""
    server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "asked"}})
    path = "/api/v1/namespaces/default/configmaps"
    found = source.get_json(path, [("fieldSelector", "metadata.name=asked")])
    assert isinstance(found.body, dict)
    assert len(found.body["items"]) == 1
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    assert source.get_json(path, headers=table).body["kind"] == "Table"  # type: ignore[index]
    assert source.get_json("/nowhere").status == 404
    source.close()


def test_the_server_is_told_whom_to_act_as(tmp_path: Path) -> None:
    """Each group in a header of its own."""
    seen = []

    def answer(connection: socket.socket) -> None:
        seen.append(connection.recv(65536).decode())
        connection.sendall(ANSWER)

    with serving(answer) as port:
        config = kubeconfig(tmp_path / "config", f"http://127.0.0.1:{port}", {"token": "t"})
        source = asking(config, Overrides(as_user="eve", as_groups=("a,b", "c")))
        assert source.get_json("/api", [("q", "a b")]).body == {}
        source.close()
    head = seen[0].splitlines()
    assert head[0] == "GET /api?q=a+b HTTP/1.1"
    assert {"Impersonate-User: eve", "Impersonate-Group: a,b", "Impersonate-Group: c"} < set(head)
    assert "Authorization: Bearer t" in head


def test_a_path_of_the_address_stands_before_those_that_are_asked_for(tmp_path: Path) -> None:
    """As behind a proxy for many clusters."""
    seen = []

    def answer(connection: socket.socket) -> None:
        seen.append(connection.recv(65536))
        connection.sendall(ANSWER)

    with serving(answer) as port:
        config = kubeconfig(tmp_path / "config", f"http://127.0.0.1:{port}/k8s/c-1/", {})
        source = asking(config)
        source.get_json("/api")
        source.close()
    assert seen[0].startswith(b"GET /k8s/c-1/api HTTP/1.1\r\n")


@pytest.mark.parametrize(
    "fault",
    [
        Refuse(),
        Reset(),
        Truncate(after_bytes=10),
        RawAnswer(b"no HTTP at all\r\n\r\n"),
        RawAnswer(ANSWER.replace(b"\r\n\r\n", b"\r\nContent-Encoding: br\r\n\r\n")),
    ],
    ids=lambda fault: type(fault).__name__,
)
def test_what_goes_wrong_is_said_as_by_the_other_source(
    server: ApiServer, tmp_path: Path, fault: Any
) -> None:
    """In the same words, and of the same kind."""
    config = server.kubeconfig(tmp_path / "config")
    said = []
    for source in (asking(config), Source(kubeconfig=config)):
        with server.faults.add(fault), pytest.raises(UnreachableError) as raised:
            source.get_json("/api")
        source.close()
        said.append((raised.type, str(raised.value)))
    assert said[0] == said[1]


def test_a_connection_that_is_refused_says_so(tmp_path: Path) -> None:
    """Nobody listens there."""
    with listening() as bound:
        port = bound.getsockname()[1]
    source = asking(kubeconfig(tmp_path / "config", f"http://127.0.0.1:{port}", {}))
    with pytest.raises(UnreachableError, match=r"connection refused\. Is it running"):
        source.get_json("/api")


def test_silence_is_told_after_the_deadline(server: ApiServer, source: BriefSource) -> None:
    """It is that of the request."""
    with server.faults.add(BlackHole()), pytest.raises(SilentError, match=r"0\.1 s"):
        source.get_json("/api", deadline=0.1)
    source.close()


def test_a_connection_is_used_again_and_left_when_the_server_closed_it(tmp_path: Path) -> None:
    """What is asked then is asked on a new one, without a word."""
    connections = []
    closed = threading.Event()

    def answer(connection: socket.socket) -> None:
        connections.append(connection)
        for _ in range(2):
            if connection.recv(65536):
                connection.sendall(ANSWER)
        connection.close()
        closed.set()

    with serving(answer) as port:
        source = asking(kubeconfig(tmp_path / "config", f"http://127.0.0.1:{port}", {}))
        assert [source.get_json("/api").status for _ in range(2)] == [200, 200]
        assert len(connections) == 1
        assert closed.wait(10)
        assert source.get_json("/api").status == 200
        assert len(connections) == 2
        source.close()


def test_closing_ends_what_is_under_way(server: ApiServer, source: BriefSource) -> None:
    """From another thread, and refuses what comes later."""
    with server.faults.add(BlackHole()) as fault:
        under_way = Background(lambda: source.get_json("/api"))
        eventually(lambda: fault.hits == 1)
        source.close()
        under_way.join()
        assert isinstance(under_way.error, StoppedError)
    with pytest.raises(StoppedError):
        source.get_json("/api")
    source.close()


def test_credentials_are_read_anew_when_that_is_asked_for(tmp_path: Path) -> None:
    """As the file has them by then, over a connection of their own."""
    seen: list[str] = []

    def answer(connection: socket.socket) -> None:
        while head := connection.recv(65536).decode():
            seen.extend(each for each in head.splitlines() if each.startswith("Authorization"))
            connection.sendall(ANSWER)

    with serving(answer) as port:
        config = kubeconfig(tmp_path / "config", f"http://127.0.0.1:{port}", {"token": "old"})
        source = asking(config)
        source.get_json("/api")
        config.write_text(config.read_text().replace("old", "new"))
        source.get_json("/api")
        source.reload_credentials()
        source.get_json("/api")
        config.write_text("no kubeconfig any more")
        source.reload_credentials()
        source.get_json("/api")
        source.close()
    assert [each.rpartition(" ")[2] for each in seen] == ["old", "old", "new", "new"]


def test_an_interrupt_ends_the_wait_for_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lookup cannot be interrupted, so that nobody waits for it in a way that cannot be."""
    over = threading.Event()

    def stuck(*_: object, **__: object) -> list[object]:
        os.kill(os.getpid(), signal.SIGINT)
        over.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", stuck)
    source = asking(kubeconfig(tmp_path / "config", "http://name.test", {}))
    try:
        with pytest.raises(KeyboardInterrupt):
            source.get_json("/api")
    finally:
        over.set()
    source.close()


def test_a_server_that_is_not_verified_is_in_doubt(tmp_path: Path) -> None:
    """It is told by whoever shows it."""
    insecure = {"insecure-skip-tls-verify": True}
    config = kubeconfig(tmp_path / "config", "https://x", {}, **insecure)
    assert "is not verified" in asking(config).doubt


def test_what_is_too_large_is_told_as_an_answer_that_broke_off(
    source: BriefSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that less is asked for at once."""
    monkeypatch.setattr("dyninformer.transport.document.LARGEST_DOCUMENT", 10)
    with pytest.raises(BrokenAnswerError, match="more than 10 bytes"):
        source.get_json("/api")
    source.close()
