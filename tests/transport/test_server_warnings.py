"""Which warnings of a server are logged, and how often."""

from __future__ import annotations

import logging
import threading

import pytest
from urllib3 import HTTPHeaderDict

from dyninformer.transport import server_warnings
from dyninformer.transport.server_warnings import WARNINGS, log_warnings


@pytest.fixture(autouse=True)
def nothing_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin like a new process."""
    monkeypatch.setattr(server_warnings, "_logged", {})


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged since the last call."""
    found = [each.getMessage() for each in caplog.records if each.name == WARNINGS]
    assert all(each.levelno == logging.WARNING for each in caplog.records)
    caplog.clear()
    return found


@pytest.mark.parametrize(
    ("headers", "texts"),
    [
        ([], []),
        (['299 - "unknown field \\"spec.a\\""'], ['unknown field "spec.a"']),
        (['299 - "first", 299 host:80 "se\\\\cond"'], ["first", "se\\cond"]),
        (['299 - "third"', '299 - "fourth" "Wed, 21 Oct 2026 07:28:00 GMT"'], ["third", "fourth"]),
        (['299 - "twice"', '299 - "twice"'], ["twice"]),
        (['110 - "stale"', "299 - unquoted", '299 - ""', "nonsense", '299 - "open'], []),
        (['299 - "a\x1b[31m\tred"'], ["a\\x1b[31m red"]),
    ],
)
def test_each_text_of_a_299_is_logged_once(
    caplog: pytest.LogCaptureFixture, headers: list[str], texts: list[str]
) -> None:
    """Other codes and malformed values are ignored; control characters are made visible."""
    found = HTTPHeaderDict([("Warning", each) for each in headers])
    log_warnings("GET /x", found)
    expected = [f"GET /x: the API server warns: {each}" for each in texts]
    assert logged(caplog) == expected
    log_warnings("GET /y", found)
    assert logged(caplog) == []


def test_threads_that_get_the_same_warning_log_it_once(caplog: pytest.LogCaptureFixture) -> None:
    """They all log at the same moment."""
    begin = threading.Barrier(8)

    def work() -> None:
        begin.wait(10)
        log_warnings("GET /x", {"warning": '299 - "of all threads"'})

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(10)
    assert len(logged(caplog)) == 1


def test_a_long_warning_is_cut_and_old_texts_are_forgotten(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A server that warns of each object in other words does not fill the memory."""
    log_warnings("GET /x", {"Warning": f'299 - "{"a" * 5000}"'})
    (line,) = logged(caplog)
    assert len(line) < 4200
    log_warnings("GET /x", {"Warning": '299 - "again"'})
    for number in range(2000):
        log_warnings("GET /x", {"Warning": f'299 - "object {number}"'})
    assert len(logged(caplog)) == 2001
    log_warnings("GET /x", {"Warning": '299 - "again"'})
    assert len(logged(caplog)) == 1
