"""What the Accept header, the query and the user agent come to."""

from __future__ import annotations

import pytest

from dyninformer.testing.api.answers import Conversion, Media, meta_kinds, negotiate
from dyninformer.testing.messages import Request
from dyninformer.testing.status import ApiError

_TABLE = Conversion("Table", "meta.k8s.io", "v1")


def _asking(accept: str | None = None, agent: str = "", **query: str) -> Request:
    headers = {"user-agent": agent}
    if accept is not None:
        headers["accept"] = accept
    return Request("GET", "/", tuple(query.items()), headers)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, Media()),
        ("", Media()),
        ("*/*", Media()),
        ("application/*", Media()),
        ("application/json;profile=foo", Media()),
        ("application/json;stream=watch", Media()),
        ("application/yaml", Media("yaml")),
        ("application/cbor, application/json;q=0.5", Media()),
        ("application/json;q=0.1,application/yaml", Media("yaml")),
        ("application/vnd.kubernetes.protobuf,application/json", Media()),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Media("json", _TABLE)),
        ("application/json;as=Nope;v=v1;g=meta.k8s.io,application/json", Media()),
        ("application/json;pretty=1", Media(indented=True)),
    ],
)
def test_the_best_clause_that_can_be_served_is_chosen(accept: str | None, expected: Media) -> None:
    """The best clause that can be served is chosen."""
    assert negotiate(_asking(accept), meta_kinds) == expected


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "application/cbor",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Table;v=v9;g=meta.k8s.io",
        "application/json;stream=other",
    ],
)
def test_what_cannot_be_served_is_a_406_that_names_what_can(accept: str) -> None:
    """What cannot be served is a 406 that names what can."""
    with pytest.raises(ApiError, match="application/json, application/yaml") as refused:
        negotiate(_asking(accept), meta_kinds)

    assert (refused.value.code, refused.value.reason) == (406, "NotAcceptable")


def test_a_watch_cannot_be_had_as_yaml() -> None:
    """A watch cannot be had as YAML."""
    with pytest.raises(ApiError, match="application/json;stream=watch"):
        negotiate(_asking("application/yaml"), meta_kinds, watch=True)


@pytest.mark.parametrize("agent", ["curl/8.5", "Wget/1.2", "Mozilla/5.0 (X11)"])
def test_people_are_shown_indented_json(agent: str) -> None:
    """Browsers, curl and wget are shown indented JSON, unless the query says otherwise."""
    assert negotiate(_asking(agent=agent)).indented
    assert not negotiate(_asking(agent=agent, pretty="false")).indented
    assert not negotiate(_asking(agent=f"my {agent}")).indented
    assert negotiate(_asking(agent="kubectl", pretty="1")).indented
