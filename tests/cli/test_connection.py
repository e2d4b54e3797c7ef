"""How far a first list has come, where somebody looks at it."""

from __future__ import annotations

import io
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dyninformer import (
    DynamicSharedInformerFactory,
    GroupVersionResource,
    InformerState,
    InformerStatus,
)
from dyninformer.cli.connection import SILENT_SECONDS, standing, sync_progress
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import BlackHole


class Terminal(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        """It says that it is one."""
        return True


def test_a_bar_has_the_total_that_the_server_tells(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first page says how many remain; the second one never comes."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    terminal = Terminal()
    with DynamicSharedInformerFactory(server.client()) as factory:
        factory.for_resource("cert-manager.io/v1/certificates", page_size=1, watch_list=False)
        with server.faults.add(BlackHole(), verb="list", resource="certificates", skip=1):
            factory.start()
            until = time.monotonic() + 30
            while (status := next(iter(factory.status().values()))).expected is None:
                assert time.monotonic() < until, status
                time.sleep(0.01)
            assert (status.listed, status.expected, status.objects) == (1, 2, 0)
            with sync_progress(factory, terminal) as refresh:
                refresh()
    assert "reading certificates.v1.cert-manager.io" in terminal.getvalue()
    assert "1/2" in terminal.getvalue()


def test_nothing_is_drawn_where_nobody_looks(server: ApiServer) -> None:
    """A pipe gets what it asked for, and nothing else."""
    pipe = io.StringIO()
    with DynamicSharedInformerFactory(server.client()) as factory:
        factory.for_resource("v1/namespaces")
        with sync_progress(factory, pipe) as refresh:
            refresh()
    assert pipe.getvalue() == ""


def test_nothing_is_drawn_on_a_terminal_that_cannot_take_back_what_it_shows(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even an empty line, under TERM=dumb."""
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal()
    with DynamicSharedInformerFactory(server.client()) as factory:
        factory.for_resource("v1/namespaces")
        with sync_progress(factory, terminal) as refresh:
            refresh()
    assert terminal.getvalue() == ""


def watching(silent: float, **more: Any) -> InformerStatus:
    """Of an informer that heard from its server so many seconds ago."""
    contact = NOON - timedelta(seconds=silent)
    return InformerStatus(state=InformerState.WATCHING, live=True, last_contact=contact, **more)


NOON = datetime(2026, 5, 1, 12, tzinfo=UTC).astimezone()
LONG = SILENT_SECONDS + 5
THEN = NOON - timedelta(seconds=LONG)
AWAY = InformerStatus(state=InformerState.BACKING_OFF, last_contact=THEN, fresh_as_of=THEN)
TRYING = InformerStatus(state=InformerState.WATCHING, last_contact=THEN, attempts=2)
ABSENT = InformerStatus(state=InformerState.ABSENT, since=THEN, last_contact=NOON, attempts=2)
READING = InformerStatus(state=InformerState.LISTING, last_contact=NOON)


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        ([], ""),
        ([watching(1, fresh_as_of=THEN)], f"live; as the server had it at {THEN:%H:%M:%S}"),
        ([watching(LONG)], f"silent since {THEN:%H:%M:%S}"),
        ([watching(1, fresh_as_of=THEN), watching(LONG)], "live"),
        (
            [watching(1, fresh_as_of=NOON), AWAY],
            f"server away since {THEN:%H:%M:%S}; as the server had it at {THEN:%H:%M:%S}",
        ),
        ([watching(1), TRYING], f"server away since {THEN:%H:%M:%S}"),
        ([watching(1), READING], "reading"),
        ([watching(1, fresh_as_of=NOON), ABSENT], f"not served since {THEN:%H:%M:%S}"),
        ([ABSENT, AWAY], f"server away since {THEN:%H:%M:%S}"),
        ([ABSENT, READING], "reading"),
    ],
)
def test_a_line_says_how_old_what_is_shown_may_be(
    statuses: list[InformerStatus], said: str
) -> None:
    """A sign of life of one is one of all; the oldest cache decides how fresh they are."""
    named = {GroupVersionResource("", "v1", f"r{at}"): each for at, each in enumerate(statuses)}
    assert standing(named, NOON) == said
