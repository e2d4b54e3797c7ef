"""Lists and gets see the revision they ask for, page by page."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

import pytest

from dyninformer.testing.cluster.lists import ContinueToken, get_version, list_versions
from dyninformer.testing.cluster.log import Key
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.structural import Structural
from dyninformer.testing.status import ApiError

from .stage import CLUS, PAINTS, Recording, Stage, golden, names, recorded, request_of

_EVEN = ("p0", "p2", "p4", "p6")
_LATER = {  # what was written between the recorded topics: name -> (topic, revision)
    "p3": 119229, "p4": 119230, "p0": 119231
}  # fmt: skip


def _recorded_stage() -> Stage:
    """The collection of the list recordings, at the revision of the first of them."""
    stage = Stage()
    items = recorded("list", "unpaged")["response"]["body"]["items"]
    for item in sorted(items, key=lambda each: int(each["metadata"]["resourceVersion"])):
        meta = item["metadata"]
        labels = {"even": "true"} if meta["name"] in _EVEN else None
        path = f"{meta['namespace']}/{meta['name']}"
        stage.put(path, at=int(meta["resourceVersion"]), labels=labels)
    stage.caches.of(stage.resource.collection).touch()
    stage.advance_to(119217)
    stage.log.compact(119216)
    return stage


def _answer(stage: Stage, recording: Recording) -> tuple[int, Any]:
    """Code and body of the answer, its items cut as the recordings' are."""
    request = request_of(recording)
    namespace = request.path.split("/")[5] if "/namespaces/" in request.path else ""
    try:
        options = stage.options(recording["request"]["path"].partition("?")[2])
        body = stage.body(list_versions(stage.caches, stage.resource, namespace, options))
    except ApiError as error:
        return error.code, error.body()
    return 200, _cut(body)


def _cut(body: Any) -> Any:
    if not isinstance(body, dict) or "items" not in body:
        return body
    kept = ("name", "namespace", "resourceVersion")
    items = [{key: item["metadata"][key] for key in kept} for item in body["items"]]
    return {**body, "items": items}


def _let_others_write(stage: Stage, response: Any) -> None:
    """Move the log to where the recorded server was when it answered."""
    body = response["body"]
    shown = body.get("message", "").rpartition("current: ")[2] or body["metadata"].get(
        "resourceVersion", "0"
    )
    if shown.isdigit():
        stage.advance_to(int(shown))


def test_a_recorded_session_of_lists_is_answered_as_it_was() -> None:
    """Paging, every kind of resourceVersion, selectors and refusals, one after another."""
    stage = _recorded_stage()
    recordings = [
        *golden("list-paging")[:-1],  # the last is of another collection
        *golden("list-resourceversion"),
        *golden("selectors"),
    ]
    answered = 0
    for recording in recordings:
        path = request_of(recording).path
        if not path.endswith("/widgets"):
            continue
        response = recording["response"]
        if recording["name"] == "page 2 after a write in between":
            stage.put("ns2/p3", at=119218)
        _let_others_write(stage, response)
        code, body = _answer(stage, recording)
        wanted = _cut(response["body"])
        if response.get("trimmedItems"):
            body["items"] = body["items"][: len(wanted["items"])]
        assert (recording["name"], code, body) == (recording["name"], response["status"], wanted)
        answered += 1
    assert answered > 40


def test_a_recorded_list_that_expired_goes_on_as_it_did() -> None:
    """410 with a new token, which reads the rest at a newer revision, to the end."""
    stage = _recorded_stage()
    first, expired, resumed, following, *refused = golden("list-continue-expired")
    stage.advance_to(119228)
    assert _answer(stage, first) == (200, _cut(first["response"]["body"]))
    for name, revision in _LATER.items():
        stage.put(f"ns2/{name}", at=revision)
    stage.advance_to(119233)
    stage.log.compact(stage.log.revision)
    assert _answer(stage, expired) == (410, expired["response"]["body"])
    stage.advance_to(119234)
    assert _answer(stage, resumed) == (200, _cut(resumed["response"]["body"]))
    stage.advance_to(119300)
    assert _answer(stage, following) == (200, _cut(following["response"]["body"]))
    for recording in refused:
        assert _answer(stage, recording) == (410, recording["response"]["body"])


@pytest.mark.parametrize(
    "recording",
    [each for each in golden("selectable-fields") if isinstance(each["response"]["body"], dict)],
    ids=lambda recording: recording["name"],
)
def test_selectable_fields_select_as_recorded(recording: Recording) -> None:
    """Numbers and booleans match as text, a missing field matches the empty text."""
    stage = Stage(PAINTS)
    stage.put("ns1/a", color="red", size=1)
    stage.put("ns1/b", color="blue", on=True, size=2)
    stage.put("ns1/c")
    wanted = recording["response"]["body"]
    if "items" in wanted:
        page = stage.page(recording["request"]["path"].partition("?")[2])
        found = [version.key.name for version in page.versions]
        assert found == [item["metadata"]["name"] for item in wanted["items"]]
    else:
        assert _answer(stage, recording) == (400, wanted)


def test_a_default_of_the_schema_is_selected_by() -> None:
    """Field selectors see what a reader sees."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "default": {},
                "properties": {"color": {"type": "string", "default": "grey"}},
            }
        },
    }
    resource = Resource(
        "sel.io", "v1", "paints", "Paint", True, selectable_fields=(".spec.color",),
        schema=schema, structural=Structural(schema),
    )  # fmt: skip
    stage = Stage(resource)
    stage.put("ns/plain")
    stage.put("ns/red", color="red")
    assert names(stage.page("fieldSelector=spec.color%3Dgrey")) == ["ns/plain"]


def test_all_pages_are_of_the_first_pages_revision() -> None:
    """Writes between the pages do not show, in whatever direction they go."""
    stage = Stage()
    for name in "abcd":
        stage.put(f"ns/{name}", v=1)
    page = stage.page("limit=2")
    stage.delete("ns/c")
    stage.put("ns/cc", v=1)
    stage.put("ns/d", v=2)
    rest = stage.page(f"limit=2&continue={page.continue_token}")
    assert names(page) + names(rest) == ["ns/a", "ns/b", "ns/c", "ns/d"]
    assert rest.versions[-1].object["spec"] == {"v": 1}
    assert rest.revision == page.revision
    assert (rest.continue_token, rest.remaining) == ("", None)


def test_pages_of_one_namespace_stay_in_it() -> None:
    """The token of a namespaced list names objects alone, as the real server's does."""
    stage = Stage()
    for path in ("a/x", "b/x", "b/y", "c/x"):
        stage.put(path)
    page = stage.page("limit=1", namespace="b")
    token = ContinueToken(stage.log.revision, "x\0").encode(from_cache=True)
    assert (names(page), page.continue_token, page.remaining) == (["b/x"], token, 1)
    assert names(stage.page(f"continue={token}", namespace="b")) == ["b/y"]


def test_pages_of_cluster_scoped_objects_go_by_name() -> None:
    """Their keys have no namespace."""
    stage = Stage(CLUS)
    for name in "abc":
        stage.put(name)
    page = stage.page("limit=1")
    assert names(stage.page(f"limit=1&continue={page.continue_token}")) == ["/b"]


def test_a_cold_cache_refuses_lists_but_those_with_a_limit_alone() -> None:
    """429 `storage is (re)initializing` until the time to warm up has passed."""
    stage = Stage(warm_up=2.0)
    stage.put("ns/a", labels={"a": "b"})
    assert names(stage.page("limit=1&resourceVersion=0")) == ["ns/a"]
    for query in ("", "resourceVersion=0", "limit=1&labelSelector=a"):
        with pytest.raises(ApiError) as caught:
            stage.page(query)
        wanted = recorded("startup", "CR list while the server starts (429)")["response"]["body"]
        assert (caught.value.body(), caught.value.retry_after) == (wanted, 1)
    stage.clock.advance(2.0)
    assert names(stage.page("labelSelector=a")) == ["ns/a"]


def test_a_cold_cache_obeys_the_limit_of_a_list_at_revision_0() -> None:
    """And its tokens are etcd's, without the slash."""
    stage = Stage(warm_up=2.0)
    for name in "abc":
        stage.put(f"ns/{name}")
    page = stage.page("limit=2&resourceVersion=0")
    assert names(page) == ["ns/a", "ns/b"]
    assert page.continue_token == ContinueToken(stage.log.revision, "ns/b\0").encode(
        from_cache=False
    )
    assert page.remaining == 1


def test_warming_begins_with_the_first_request() -> None:
    """Not with the CRD, nor with the objects."""
    stage = Stage(warm_up=2.0)
    stage.clock.advance(100)
    with pytest.raises(ApiError):
        stage.page()
    stage.clock.advance(1.9)
    with pytest.raises(ApiError):
        stage.page()
    stage.clock.advance(0.2)
    assert names(stage.page()) == []


def test_a_list_at_revision_0_may_lag_behind_other_collections() -> None:
    """Its revision is the cache's own; a consistent read anywhere moves it on."""
    stage = Stage()
    stage.put("ns/a")
    here = stage.page().revision
    stage.advance_to(here + 10)
    assert stage.page("resourceVersion=0").revision == here
    assert stage.page().revision == here + 10
    assert stage.page("resourceVersion=0").revision == here + 10


def test_a_list_not_older_than_a_newer_revision_makes_the_cache_catch_up() -> None:
    """It answers at the newest, not at what was asked."""
    stage = Stage()
    stage.put("ns/a")
    here = stage.page().revision
    stage.advance_to(here + 10)
    assert stage.page(f"resourceVersion={here + 5}").revision == here + 10


def test_a_future_revision_is_refused_after_three_seconds() -> None:
    """The refusal says how long the real server would have waited."""
    stage = Stage()
    with pytest.raises(ApiError) as caught:
        stage.page("resourceVersion=99")
    assert caught.value.code == 504
    assert caught.value.delay == 3.0
    assert caught.value.retry_after == 1


def test_without_a_watch_cache_a_future_revision_is_refused_at_once() -> None:
    """As recorded of --watch-cache=false."""
    stage = Stage(watch_cache=False)
    stage.advance_to(61331)
    wanted = recorded("no-watch-cache", "list resourceVersion=99999999")["response"]["body"]
    with pytest.raises(ApiError) as caught:
        stage.page("resourceVersion=99999999")
    assert (caught.value.body(), caught.value.delay) == (wanted, 0.0)
    assert caught.value.retry_after is None


def test_an_exact_list_at_revision_1_of_a_young_log_is_empty() -> None:
    """Nothing was compacted yet."""
    stage = Stage()
    stage.put("ns/a")
    page = stage.page("resourceVersion=1&resourceVersionMatch=Exact")
    assert (names(page), page.revision) == ([], 1)


def test_a_get_finds_the_live_object_or_says_which_is_missing() -> None:
    """404 names the resource in full."""
    stage = Stage()
    version = stage.put("ns/a")
    assert get_version(stage.caches, stage.resource, Key("ns", "a")) is version
    with pytest.raises(ApiError) as caught:
        get_version(stage.caches, stage.resource, Key("ns", "b"))
    assert caught.value.message == 'widgets.ex.io "b" not found'


@pytest.mark.parametrize(("asked", "code"), [("99", 504), ("abc", 500)])
def test_a_get_refuses_revisions_of_the_future_and_no_numbers(asked: str, code: int) -> None:
    """As a list does, but the bad number is a bare 500."""
    stage = Stage()
    stage.put("ns/a")
    with pytest.raises(ApiError) as caught:
        get_version(stage.caches, stage.resource, Key("ns", "a"), asked)
    assert caught.value.code == code


def test_a_page_of_a_shard_counts_the_rest_as_etcd_does() -> None:
    """What lies beyond the start of the last round of reading, less the limit.

    Recorded of 10,000 objects, every second one in the shard: 9,800 remain after a page
    of 100, since 100 were read first and 200 then.
    """
    stage = Stage(sharding=True)
    uids = Random(1)
    for number in range(1000):
        uid = str(UUID(int=uids.getrandbits(128)))
        stage.put(f"ns/o{number:04}", {"metadata": {"name": f"o{number:04}", "uid": uid}})
    shard = "shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')"
    page = stage.page(f"limit=100&shardSelector={shard}")
    assert len(page.versions) == 100
    assert 100 < int(page.versions[-1].key.name[1:]) < 300
    assert page.remaining == 800
    query = f"limit=100&shardSelector={shard}&continue={page.continue_token}"
    following = stage.page(query)
    assert following.versions[0].key > page.versions[-1].key
    assert following.shard_selector == shard


@pytest.mark.parametrize(("namespace", "goes_on"), [("ns", False), ("", True)])
def test_a_list_that_names_its_one_object_has_no_second_page(namespace: str, goes_on: bool) -> None:
    """In one namespace; across namespaces others may have the name."""
    stage = Stage()
    for name in "abc":
        stage.put(f"ns/{name}")
    page = stage.page("limit=1&fieldSelector=metadata.name%3Db", namespace=namespace)
    assert names(page) == ["ns/b"]
    assert bool(page.continue_token) == goes_on
    assert names(stage.page("fieldSelector=metadata.name%3Dbb", namespace=namespace)) == []
