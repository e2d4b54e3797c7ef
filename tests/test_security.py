"""DESIGN's section on security as a whole: nothing that is secret is told, whatever goes wrong.

That each single place keeps to it is held where that place is: docs/reliability.md names the tests.
"""

from __future__ import annotations

import base64
import logging
import re
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dyninformer import (
    ConfigError,
    DynamicSharedInformerFactory,
    DynInformerError,
    Event,
    GenericInformer,
)
from dyninformer.testing import ApiServer, faults
from dyninformer.testing.client import write_private
from dyninformer.testing.faults import Fault
from dyninformer.types import Object
from tests.config_maps import PATIENCE

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "dyninformer"
RELIABILITY = (TESTS.parent / "docs" / "reliability.md").read_text(encoding="utf-8")
HUSH = "correct horse battery staple"
HUSHED = base64.b64encode(HUSH.encode()).decode()


def secret(name: str, content: str = HUSHED) -> dict[str, Any]:
    """One that holds what nobody is to read."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"a": content}}


class Noted:
    """Metrics that remember every word."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def count(self, name: str, gvr: object, amount: int = 1, **labels: str) -> None:
        """Take it."""
        self.words += [name, str(gvr), *labels.values()]

    def gauge(self, name: str, gvr: object, value: float, **labels: str) -> None:
        """Take it."""
        self.count(name, gvr, 1, **labels)


def odd(line: str) -> bytes:
    """A line of a watch that is all but an event of a secret."""
    return line.replace("HUSH", HUSHED).encode()


MISHAPS = [
    faults.HttpStatus(500),
    faults.HttpStatus(503, text="upstream said no"),
    faults.HttpStatus(401),
    faults.HttpStatus(403),
    faults.ContentType("text/html"),
    faults.Truncate(),
    faults.InjectLine(odd('{"type":"MODIFIED","object":{"data":{"a":"HUSH"},"metadata":{}}}')),
    faults.InjectLine(odd('{"type":"MODIFIED","object":{"data":{"a":"HUSH"')),
    faults.InjectLine(odd('{"type":"HUSH","object":{"data":{"a":"HUSH"}}}')),
    faults.InjectLine(odd('["HUSH"]')),
]


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    """One that wants a token, with secrets."""
    with ApiServer(tls=True) as found:
        for each in range(3):
            found.create(secret(f"s{each}"))
        yield found


@pytest.mark.parametrize("mishap", MISHAPS, ids=repr)
def test_neither_credentials_nor_contents_are_told_whatever_goes_wrong(
    server: ApiServer, caplog: pytest.LogCaptureFixture, mishap: Fault
) -> None:
    """In no log, repr, error, status or metric: here servers, index functions and handlers fail."""
    caplog.set_level(logging.DEBUG, "dyninformer")
    metrics = Noted()
    said: list[object] = []

    def index_fails(obj: Object) -> list[str]:
        raise ValueError("an index function of the user's")

    def handler_fails(event: Event) -> None:
        said.append(event)
        raise RuntimeError("a handler of the user's")

    with DynamicSharedInformerFactory(server.client(), metrics=metrics) as factory:
        found = factory.for_resource("secrets", indexers={"bad": index_fails, "of": ".data.a"})
        registration = found.informer.add_event_handler(on_event=handler_fails)
        with server.faults.add(mishap, resource="secrets", verb={"list", "watch"}, times=1) as done:
            factory.start()
            assert done.wait_hit(timeout=PATIENCE)
            said.append(found.informer.status())
        assert factory.sync(PATIENCE, patient=True)
        assert registration.wait_for_sync(PATIENCE)
        said += [*errors_of(found), found.informer.status(), registration, factory, found]
        said += [
            found.informer,
            found.lister,
            found.informer.indexer,
            found.lister.by_namespace("x"),
        ]
    told = "\n".join([caplog.text, *metrics.words, *map(str, said), *map(repr, said)])
    assert "a handler of the user's" in caplog.text, "the logs are there"
    assert "an index function of the user's" in caplog.text
    for hidden in (server.token, HUSH, HUSHED):
        assert hidden not in told


def errors_of(found: GenericInformer) -> list[DynInformerError]:
    """What calls that fail say."""
    calls: list[Callable[[], object]] = [
        lambda: found.lister.get("nothing", "default"),
        lambda: found.lister.by_index("none", "x"),
        lambda: found.informer.patch("s0", "default", {"data": {"a": HUSH}}),
        lambda: found.informer.apply(secret("s0", HUSH), field_manager="me"),
        lambda: found.informer.wait_for("jsonpath={.data.a}=x", name="default/s0", timeout=0),
        lambda: found.informer.wait_for("jsonpath={.data.a}>x", name="default/s0", timeout=0),
    ]
    errors = []
    for call in calls:
        with pytest.raises(DynInformerError) as caught:
            call()
        errors.append(caught.value)
    return errors


@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is this machine on Linux alone")
def test_the_embedded_server_listens_on_loopback_alone(server: ApiServer) -> None:
    """At one address of it, and at no other of the machine."""
    port = int(server.url.rpartition(":")[2])
    socket.create_connection(("127.0.0.1", port), timeout=5).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=5)


def test_a_file_that_wants_to_be_executed_is_refused(tmp_path: Path) -> None:
    """YAML can name a function to be called; none is."""
    path, made = tmp_path / "config", tmp_path / "made"
    path.write_text(f"current-context: !!python/object/apply:os.mkdir ['{made}']\n")
    with pytest.raises(ConfigError):
        DynamicSharedInformerFactory(kubeconfig=path).for_resource("pods")
    assert not made.exists()


_WRITES = re.compile(
    r"""open\([^)\n]*["'][wax]b?["']|os\.open\((?!os\.devnull)[^)\n]*O_(?:WRONLY|RDWR)"""
    r"""|\.write_(?:text|bytes)\(|\bmkstemp\(|\bmkdtemp\(|TemporaryDirectory\("""
)


def test_files_are_written_where_it_is_known_that_they_are_private() -> None:
    """Each of these places has a test of its own, or is a folder that is its owner's alone."""
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if _WRITES.search(path.read_text(encoding="utf-8"))
    }
    assert found == {
        "moments/recorded.py",  # 0600, and never in place of another
        "moments/saved.py",  # 0600, aside, and then in place of what was there
        "testing/api_server.py",  # a folder of mkdtemp's, 0700
        "testing/client.py",  # `write_private`, for kubeconfigs and keys
        "testing/control_plane.py",  # a folder of mkdtemp's
        "testing/processes.py",  # logs, in that folder
        "transport/plain.py",  # a client certificate, for a moment, in a folder of its own
    }


def test_what_is_written_in_one_step_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    """Where it fails, what was there stays, and nothing is left beside it."""
    path = tmp_path / "config"
    write_private(path, b"before")
    with pytest.raises(TypeError):
        write_private(path, HUSH)  # type: ignore[arg-type]
    assert path.read_bytes() == b"before"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_of_a_cluster_becomes_an_element_of_html() -> None:
    """Two modules write HTML, one shows it; what they make of hostile names, their tests say."""
    html = re.compile(r"</\w|_repr_(?:html|svg|javascript|markdown|latex)_|IPython\.display")
    shown = [path for path in PACKAGE.rglob("*.py") if html.search(path.read_text("utf-8"))]
    found = {path.relative_to(PACKAGE).as_posix() for path in shown}
    assert found == {"display/html.py", "display/live/page.py", "display/live/screens.py"}


@pytest.mark.parametrize("name", re.findall(r"`(tests/[\w/]+\.py::\w+)`", RELIABILITY))
def test_a_test_that_the_documentation_names_is_there(name: str) -> None:
    """What is promised is held by something."""
    path, function = name.split("::")
    text = (TESTS.parent / path).read_text(encoding="utf-8")
    assert re.search(rf"def {function}\(", text), name
