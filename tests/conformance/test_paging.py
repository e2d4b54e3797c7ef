"""Limits, continue tokens, and what they are pinned to."""

from __future__ import annotations

import base64
import json

import pytest

from tests.conformance.cluster import Collection
from tests.conformance.wire import MERGE, pages


def _decoded(token: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return found


def test_a_page_says_how_to_go_on_and_how_many_remain(widgets: Collection) -> None:
    """A cut list has a token and the count of what is left."""
    widgets.fill("a", "b", "c")
    page = widgets.api.get(widgets.path, {"limit": 2})
    assert page.names == ["a", "b"]
    assert list(page.json["metadata"]) == ["continue", "remainingItemCount", "resourceVersion"]
    assert page.json["metadata"]["remainingItemCount"] == 1


def test_the_last_page_has_an_empty_token(widgets: Collection) -> None:
    """The end of a paged list is an empty token and no count."""
    widgets.fill("a", "b", "c")
    *_, last = pages(widgets.api, widgets.path, {"limit": 2})
    assert last.names == ["c"]
    assert last.json["metadata"] == {"continue": "", "resourceVersion": last.version}


def test_a_token_is_the_version_and_the_last_key(widgets: Collection) -> None:
    """The token is base64url of JSON without padding: version, revision, last key and a NUL."""
    widgets.fill("a", "b")
    page = widgets.api.get(widgets.path, {"limit": 1})
    token = _decoded(page.token)
    assert not page.token.endswith("=")
    assert token["v"] == "meta.k8s.io/v1"
    assert str(token["rv"]) == page.version
    assert str(token["start"]).endswith("a\0")


def test_every_page_is_of_the_first_ones_moment(widgets: Collection) -> None:
    """Writes in between show on no later page, nor in its resourceVersion."""
    widgets.fill("a", "b", "c")
    first = widgets.api.get(widgets.path, {"limit": 1})
    widgets.fill("bb")
    widgets.merge("c", {"spec": {"size": 9}})
    assert widgets.api.delete(widgets.at("b")).status == 200
    second = widgets.api.get(widgets.path, {"limit": 1, "continue": first.token})
    third = widgets.api.get(widgets.path, {"limit": 1, "continue": second.token})
    assert [*second.names, *third.names] == ["b", "c"]
    assert {second.version, third.version} == {first.version}
    assert "size" not in third.json["items"][0]["spec"]


def test_a_token_without_limit_gives_all_the_rest(widgets: Collection) -> None:
    """`continue` alone goes to the end."""
    widgets.fill("a", "b", "c", "d")
    first = widgets.api.get(widgets.path, {"limit": 1})
    rest = widgets.api.get(widgets.path, {"continue": first.token})
    assert (rest.names, rest.token) == (["b", "c", "d"], "")


@pytest.mark.parametrize("limit", ["3", "0", "-1", "99"])
def test_a_limit_that_cuts_nothing_leaves_no_token(widgets: Collection, limit: str) -> None:
    """A limit of all there is, none, or a negative one, gives the whole list."""
    widgets.fill("a", "b", "c")
    answer = widgets.api.get(widgets.path, {"limit": limit})
    assert (answer.names, answer.token) == (["a", "b", "c"], "")


def test_a_selected_page_does_not_count_the_rest(widgets: Collection) -> None:
    """With a selector nobody knows how many remain."""
    for name in "abc":
        widgets.fill(name, labels={"x": "y"})
    page = widgets.api.get(widgets.path, {"limit": 1, "labelSelector": "x=y"})
    assert page.token
    assert "remainingItemCount" not in page.json["metadata"]


def test_a_selected_list_fills_its_pages(widgets: Collection) -> None:
    """The limit counts what matches, not what was looked at."""
    for number, name in enumerate("abcdef"):
        widgets.fill(name, labels={"odd": str(bool(number % 2)).lower()})
    found = list(pages(widgets.api, widgets.path, {"limit": 2, "labelSelector": "odd=true"}))
    assert [name for page in found for name in page.names] == ["b", "d", "f"]
    assert found[0].names == ["b", "d"]


def test_version_zero_ignores_the_limit(widgets: Collection) -> None:
    """A list from the cache comes whole."""
    widgets.fill("a", "b", "c")
    version = widgets.version()
    assert version
    answer = widgets.api.get(widgets.path, {"limit": 1, "resourceVersion": "0"})
    assert (answer.names, answer.token) == (["a", "b", "c"], "")


def test_a_token_with_version_zero_drops_the_limit(widgets: Collection) -> None:
    """`continue` with resourceVersion=0 is accepted and gives all the rest."""
    widgets.fill("a", "b", "c")
    first = widgets.api.get(widgets.path, {"limit": 1})
    params = {"limit": 1, "continue": first.token, "resourceVersion": "0"}
    assert widgets.api.get(widgets.path, params).names == ["b", "c"]


def test_a_token_with_another_version_is_refused(widgets: Collection) -> None:
    """A continued list cannot choose its version."""
    widgets.fill("a", "b")
    first = widgets.api.get(widgets.path, {"limit": 1})
    params = {"limit": 1, "continue": first.token, "resourceVersion": first.version}
    answer = widgets.api.get(widgets.path, params)
    assert answer.status == 400
    assert answer.json["message"] == (
        "specifying resource version is not allowed when using continue"
    )


def test_a_limit_that_is_no_number_is_refused(widgets: Collection) -> None:
    """A bad limit is a 400 in Go's words."""
    answer = widgets.api.get(widgets.path, {"limit": "abc"})
    assert answer.status == 400
    assert answer.json["message"] == 'strconv.ParseInt: parsing "abc": invalid syntax'


def test_a_token_that_is_no_token_is_refused(widgets: Collection) -> None:
    """A token that decodes to nothing useful is a 400 that says so."""
    empty = base64.urlsafe_b64encode(b"{}").rstrip(b"=").decode()
    answer = widgets.api.get(widgets.path, {"limit": 1, "continue": empty})
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    assert answer.json["message"] == (
        "invalid continue token: continue key is not valid: "
        "server does not recognize this encoded version "
    )


def test_pages_of_tables_follow_the_same_tokens(widgets: Collection) -> None:
    """A table is paged like the list it shows."""
    widgets.fill("a", "b")
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    first = widgets.api.get(widgets.path, {"limit": 1}, accept=accept)
    second = widgets.api.get(widgets.path, {"limit": 1, "continue": first.token}, accept=accept)
    assert [page.json["rows"][0]["cells"][0] for page in (first, second)] == ["a", "b"]
    assert first.json["metadata"]["remainingItemCount"] == 1


def test_an_exact_list_at_a_cut_version_is_paged_too(widgets: Collection) -> None:
    """Limit with resourceVersion and no match means exactly that version."""
    widgets.fill("a", "b")
    version = widgets.version()
    widgets.api.patch(widgets.at("b"), {"spec": {"size": 5}}, MERGE)
    widgets.fill("c")
    found = list(pages(widgets.api, widgets.path, {"limit": 1}))
    assert [page.names[0] for page in found] == ["a", "b", "c"]
    old = widgets.api.get(widgets.path, {"limit": 5, "resourceVersion": version})
    assert (old.names, old.version) == (["a", "b"], version)
    assert "size" not in old.json["items"][1]["spec"]
