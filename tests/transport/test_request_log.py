"""What the loggers of requests say, and what they never say."""

from __future__ import annotations

import logging
from contextlib import closing

import pytest

from dyninformer.errors import UnreachableError
from dyninformer.testing import ApiServer
from dyninformer.transport.request_log import HEADERS, REQUESTS
from dyninformer.watching.client import Source


def test_each_request_is_a_line(secure: ApiServer, caplog: pytest.LogCaptureFixture) -> None:
    """With what became of it; headers only for those that ask for them."""
    caplog.set_level(logging.DEBUG, REQUESTS)
    with closing(Source(kubeconfig=secure.kubeconfig())) as source:
        source.get_json("/version")
    (line,) = [each.getMessage() for each in caplog.records if each.name.startswith(REQUESTS)]
    assert line.startswith(f"GET {secure.url}/version 200 OK in ")


def test_no_header_that_may_be_a_secret_is_shown(
    secure: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the caller's client sends besides a token."""
    caplog.set_level(logging.DEBUG, REQUESTS)
    caplog.set_level(logging.DEBUG, HEADERS)
    dynamic = secure.client()
    dynamic.client.default_headers |= {"X-Api-Key": "hunter2", "Cookie": "hunter3"}
    with closing(Source(dynamic)) as source:
        source.get_json("/version")
    said = caplog.text
    assert "X-Api-Key: <masked>" in said
    assert "Accept: application/json" in said
    assert not [each for each in ("hunter2", "hunter3", secure.token) if each in said]


def test_a_request_that_fails_is_a_line_too(caplog: pytest.LogCaptureFixture) -> None:
    """It says how long that took."""
    caplog.set_level(logging.DEBUG, REQUESTS)
    with ApiServer() as server:
        source = Source(server.client())
        server.stop()
        with closing(source), pytest.raises(UnreachableError):
            source.get_json("/version")
    assert "/version failed (" in caplog.text
