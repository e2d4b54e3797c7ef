"""Lists and gets see the revision they ask for, page by page, or are refused as on the server."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from random import Random
from typing import Any
from uuid import UUID

import pytest

from dyninformer.testing.cluster.lists import (
    ContinueToken,
    get_version,
    list_versions,
    parse_continue,
    parse_list_options,
    truthy,
)
from dyninformer.testing.cluster.log import Key
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.structural import Structural
from dyninformer.testing.cluster.watch_cache import ReadSettings
from dyninformer.testing.messages import Request
from dyninformer.testing.status import ApiError
from dyninformer.types import Object

from .one_collection import CLUS, PAINTS, WIDGETS, OneCollection, names
from .recordings import golden, recorded, request_of

_EVEN = ("p0", "p2", "p4", "p6")
_LATER = {  # objects written between the recorded topics, and their revisions
    "p3": 119229,
    "p4": 119230,
    "p0": 119231,
}


def _recorded_collection() -> OneCollection:
    """The collection of the list recordings, at the revision of the first of them."""
    collection = OneCollection()
    items = recorded("list", "unpaged")["response"]["body"]["items"]
    for item in sorted(items, key=lambda each: int(each["metadata"]["resourceVersion"])):
        meta = item["metadata"]
        labels = {"even": "true"} if meta["name"] in _EVEN else None
        path = f"{meta['namespace']}/{meta['name']}"
        collection.put(path, at=int(meta["resourceVersion"]), labels=labels)
    collection.caches.of(collection.resource.collection).touch()
    collection.advance_to(119217)
    collection.log.compact(119216)
    return collection


def _answer(collection: OneCollection, recording: Object) -> tuple[int, Any]:
    """Code and body of the answer, its items cut as the recordings' are."""
    request = request_of(recording)
    namespace = request.path.split("/")[5] if "/namespaces/" in request.path else ""
    try:
        options = collection.options(recording["request"]["path"].partition("?")[2])
        body = collection.body(
            list_versions(collection.caches, collection.resource, namespace, options)
        )
    except ApiError as error:
        return error.code, error.body()
    return 200, _cut(body)


def _cut(body: Any) -> Any:
    if not isinstance(body, dict) or "items" not in body:
        return body
    kept = ("name", "namespace", "resourceVersion")
    items = [{key: item["metadata"][key] for key in kept} for item in body["items"]]
    return {**body, "items": items}


def _let_others_write(collection: OneCollection, response: Any) -> None:
    """Move the log to where the recorded server was when it answered."""
    body = response["body"]
    shown = body.get("message", "").rpartition("current: ")[2] or body["metadata"].get(
        "resourceVersion", "0"
    )
    if shown.isdigit():
        collection.advance_to(int(shown))


def test_a_recorded_session_of_lists_is_answered_as_it_was() -> None:
    """Paging, every kind of resourceVersion, selectors and refusals, one after another."""
    collection = _recorded_collection()
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
            collection.put("ns2/p3", at=119218)
        _let_others_write(collection, response)
        code, body = _answer(collection, recording)
        wanted = _cut(response["body"])
        if response.get("trimmedItems"):
            body["items"] = body["items"][: len(wanted["items"])]
        assert (recording["name"], code, body) == (recording["name"], response["status"], wanted)
        answered += 1
    assert answered > 40


def test_a_recorded_list_that_expired_goes_on_as_it_did() -> None:
    """410 with a new token, which reads the rest at a newer revision, to the end."""
    collection = _recorded_collection()
    first, expired, resumed, following, *refused = golden("list-continue-expired")
    collection.advance_to(119228)
    assert _answer(collection, first) == (200, _cut(first["response"]["body"]))
    for name, revision in _LATER.items():
        collection.put(f"ns2/{name}", at=revision)
    collection.advance_to(119233)
    collection.log.compact(collection.log.revision)
    assert _answer(collection, expired) == (410, expired["response"]["body"])
    collection.advance_to(119234)
    assert _answer(collection, resumed) == (200, _cut(resumed["response"]["body"]))
    collection.advance_to(119300)
    assert _answer(collection, following) == (200, _cut(following["response"]["body"]))
    for recording in refused:
        assert _answer(collection, recording) == (410, recording["response"]["body"])


@pytest.mark.parametrize(
    "recording",
    [each for each in golden("selectable-fields") if isinstance(each["response"]["body"], dict)],
    ids=lambda recording: recording["name"],
)
def test_selectable_fields_select_as_recorded(recording: Object) -> None:
    """Numbers and booleans match as text, a missing field matches the empty text."""
    collection = OneCollection(PAINTS)
    collection.put("ns1/a", color="red", size=1)
    collection.put("ns1/b", color="blue", on=True, size=2)
    collection.put("ns1/c")
    wanted = recording["response"]["body"]
    if "items" in wanted:
        page = collection.page(recording["request"]["path"].partition("?")[2])
        found = [version.key.name for version in page.versions]
        assert found == [item["metadata"]["name"] for item in wanted["items"]]
    else:
        assert _answer(collection, recording) == (400, wanted)


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
        "sel.io",
        "v1",
        "paints",
        "Paint",
        True,
        selectable_fields=(".spec.color",),
        schema=schema,
        structural=Structural(schema),
    )
    collection = OneCollection(resource)
    collection.put("ns/plain")
    collection.put("ns/red", color="red")
    assert names(collection.page("fieldSelector=spec.color%3Dgrey")) == ["ns/plain"]


def test_all_pages_are_of_the_first_pages_revision() -> None:
    """Writes between the pages do not show, in whatever direction they go."""
    collection = OneCollection()
    for name in "abcd":
        collection.put(f"ns/{name}", v=1)
    page = collection.page("limit=2")
    collection.delete("ns/c")
    collection.put("ns/cc", v=1)
    collection.put("ns/d", v=2)
    rest = collection.page(f"limit=2&continue={page.continue_token}")
    assert names(page) + names(rest) == ["ns/a", "ns/b", "ns/c", "ns/d"]
    assert rest.versions[-1].object["spec"] == {"v": 1}
    assert rest.revision == page.revision
    assert (rest.continue_token, rest.remaining) == ("", None)


def test_pages_of_one_namespace_stay_in_it() -> None:
    """The token of a namespaced list names objects alone, as the real server's does."""
    collection = OneCollection()
    for path in ("a/x", "b/x", "b/y", "c/x"):
        collection.put(path)
    page = collection.page("limit=1", namespace="b")
    token = ContinueToken(collection.log.revision, "x\0").encode(from_cache=True)
    assert (names(page), page.continue_token, page.remaining) == (["b/x"], token, 1)
    assert names(collection.page(f"continue={token}", namespace="b")) == ["b/y"]


def test_pages_of_cluster_scoped_objects_go_by_name() -> None:
    """Their keys have no namespace."""
    collection = OneCollection(CLUS)
    for name in "abc":
        collection.put(name)
    page = collection.page("limit=1")
    assert names(collection.page(f"limit=1&continue={page.continue_token}")) == ["/b"]


def test_a_cold_cache_refuses_lists_but_those_with_a_limit_alone() -> None:
    """429 `storage is (re)initializing` until the time to warm up has passed."""
    collection = OneCollection(warm_up=2.0)
    collection.put("ns/a", labels={"a": "b"})
    assert names(collection.page("limit=1&resourceVersion=0")) == ["ns/a"]
    for query in ("", "resourceVersion=0", "limit=1&labelSelector=a"):
        with pytest.raises(ApiError) as caught:
            collection.page(query)
        wanted = recorded("startup", "CR list while the server starts (429)")["response"]["body"]
        assert (caught.value.body(), caught.value.retry_after) == (wanted, 1)
    collection.clock.advance(2.0)
    assert names(collection.page("labelSelector=a")) == ["ns/a"]


def test_a_cold_cache_obeys_the_limit_of_a_list_at_revision_0() -> None:
    """And its tokens are etcd's, without the slash."""
    collection = OneCollection(warm_up=2.0)
    for name in "abc":
        collection.put(f"ns/{name}")
    page = collection.page("limit=2&resourceVersion=0")
    assert names(page) == ["ns/a", "ns/b"]
    assert page.continue_token == ContinueToken(collection.log.revision, "ns/b\0").encode(
        from_cache=False
    )
    assert page.remaining == 1


def test_warming_begins_with_the_first_request() -> None:
    """Not with the CRD, nor with the objects."""
    collection = OneCollection(warm_up=2.0)
    collection.clock.advance(100)
    with pytest.raises(ApiError):
        collection.page()
    collection.clock.advance(1.9)
    with pytest.raises(ApiError):
        collection.page()
    collection.clock.advance(0.2)
    assert names(collection.page()) == []


def test_a_list_at_revision_0_may_lag_behind_other_collections() -> None:
    """Its revision is the cache's own; a consistent read anywhere moves it on."""
    collection = OneCollection()
    collection.put("ns/a")
    here = collection.page().revision
    collection.advance_to(here + 10)
    assert collection.page("resourceVersion=0").revision == here
    assert collection.page().revision == here + 10
    assert collection.page("resourceVersion=0").revision == here + 10


def test_a_list_not_older_than_a_newer_revision_makes_the_cache_catch_up() -> None:
    """It answers at the newest, not at what was asked."""
    collection = OneCollection()
    collection.put("ns/a")
    here = collection.page().revision
    collection.advance_to(here + 10)
    assert collection.page(f"resourceVersion={here + 5}").revision == here + 10


def test_a_future_revision_is_refused_after_three_seconds() -> None:
    """The refusal says how long the real server would have waited."""
    collection = OneCollection()
    with pytest.raises(ApiError) as caught:
        collection.page("resourceVersion=99")
    assert caught.value.code == 504
    assert caught.value.delay == 3.0
    assert caught.value.retry_after == 1


def test_without_a_watch_cache_a_future_revision_is_refused_at_once() -> None:
    """As recorded of --watch-cache=false."""
    collection = OneCollection(watch_cache=False)
    collection.advance_to(61331)
    wanted = recorded("no-watch-cache", "list resourceVersion=99999999")["response"]["body"]
    with pytest.raises(ApiError) as caught:
        collection.page("resourceVersion=99999999")
    assert (caught.value.body(), caught.value.delay) == (wanted, 0.0)
    assert caught.value.retry_after is None


def test_an_exact_list_at_revision_1_of_a_young_log_is_empty() -> None:
    """Nothing was compacted yet."""
    collection = OneCollection()
    collection.put("ns/a")
    page = collection.page("resourceVersion=1&resourceVersionMatch=Exact")
    assert (names(page), page.revision) == ([], 1)


def test_a_get_finds_the_live_object_or_says_which_is_missing() -> None:
    """404 names the resource in full."""
    collection = OneCollection()
    version = collection.put("ns/a")
    assert get_version(collection.caches, collection.resource, Key("ns", "a")) is version
    with pytest.raises(ApiError) as caught:
        get_version(collection.caches, collection.resource, Key("ns", "b"))
    assert caught.value.message == 'widgets.ex.io "b" not found'


@pytest.mark.parametrize(("asked", "code"), [("99", 504), ("abc", 500)])
def test_a_get_refuses_revisions_of_the_future_and_no_numbers(asked: str, code: int) -> None:
    """As a list does, but the bad number is a bare 500."""
    collection = OneCollection()
    collection.put("ns/a")
    with pytest.raises(ApiError) as caught:
        get_version(collection.caches, collection.resource, Key("ns", "a"), asked)
    assert caught.value.code == code


def test_a_page_of_a_shard_counts_the_rest_as_etcd_does() -> None:
    """What lies beyond the start of the last round of reading, less the limit.

    Recorded of 10,000 objects, every second one in the shard: 9,800 remain after a page
    of 100, since 100 were read first and 200 then.
    """
    collection = OneCollection(sharding=True)
    uids = Random(1)
    for number in range(1000):
        uid = str(UUID(int=uids.getrandbits(128)))
        collection.put(f"ns/o{number:04}", {"metadata": {"name": f"o{number:04}", "uid": uid}})
    shard = "shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')"
    page = collection.page(f"limit=100&shardSelector={shard}")
    assert len(page.versions) == 100
    assert 100 < int(page.versions[-1].key.name[1:]) < 300
    assert page.remaining == 800
    query = f"limit=100&shardSelector={shard}&continue={page.continue_token}"
    following = collection.page(query)
    assert following.versions[0].key > page.versions[-1].key
    assert following.shard_selector == shard


@pytest.mark.parametrize(("namespace", "goes_on"), [("ns", False), ("", True)])
def test_a_list_that_names_its_one_object_has_no_second_page(namespace: str, goes_on: bool) -> None:
    """In one namespace; across namespaces others may have the name."""
    collection = OneCollection()
    for name in "abc":
        collection.put(f"ns/{name}")
    page = collection.page("limit=1&fieldSelector=metadata.name%3Db", namespace=namespace)
    assert names(page) == ["ns/b"]
    assert bool(page.continue_token) == goes_on
    assert names(collection.page("fieldSelector=metadata.name%3Dbb", namespace=namespace)) == []


_TOPICS = (
    "list-paging",
    "list-resourceversion",
    "watch-errors",
    "watchlist",
    "selectors",
    "selectable-fields",
    "sharding-on",
)
_RESOURCES = {"/apis/ex.io/v1/widgets": WIDGETS, "/apis/sel.io/v1/paints": PAINTS}


def _refusals() -> Iterator[Any]:
    """Every recorded refusal of a list or watch that does not depend on the data."""
    for topic in _TOPICS:
        for recording in golden(topic):
            path = request_of(recording).path
            if recording["response"]["status"] in (400, 422, 500) and path in _RESOURCES:
                yield pytest.param(
                    recording, _RESOURCES[path], id=f"{topic}: {recording['name'][:60]}"
                )


@pytest.mark.parametrize(("recording", "resource"), list(_refusals()))
def test_a_recorded_refusal_is_given_word_for_word(recording: Object, resource: Resource) -> None:
    """The same query gives the same code and the same Status."""
    request = request_of(recording)
    verb = "watch" if request.param("watch") is not None else "list"
    settings = ReadSettings(sharding=request.param("shardSelector") is not None)
    with pytest.raises(ApiError) as caught:
        parse_list_options(request, resource, verb, settings)
    assert caught.value.body() == recording["response"]["body"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "limit=abc&labelSelector=a b&timeoutSeconds=x",
            'strconv.ParseInt: parsing "x": invalid syntax',
        ),
        ("limit=", 'strconv.ParseInt: parsing "": invalid syntax'),
        ("limit=1.5", 'strconv.ParseInt: parsing "1.5": invalid syntax'),
        (
            "limit=99999999999999999999",
            'strconv.ParseInt: parsing "99999999999999999999": value out of range',
        ),
        (
            "labelSelector=a b&fieldSelector=x",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("fieldSelector=q%3D1&resourceVersion=abc", "field label not supported: q"),
        (
            "resourceVersion=18446744073709551616",
            (
                'invalid resource version: resourceVersion: Invalid value: "18446744073709551616": '
                'strconv.ParseUint: parsing "18446744073709551616": value out of range'
            ),
        ),
        (
            "resourceVersion=%201",
            (
                'invalid resource version: resourceVersion: Invalid value: " 1": '
                'strconv.ParseUint: parsing " 1": invalid syntax'
            ),
        ),
        (
            "continue=x&resourceVersion=5",
            (
                "invalid continue token: continue key is not valid: "
                "illegal base64 data at input byte 0"
            ),
        ),
    ],
)
def test_the_first_fault_of_several_is_the_one_the_real_server_names(
    query: str, message: str
) -> None:
    """Numbers come before selectors, selectors before revisions, tokens before revisions."""
    with pytest.raises(ApiError) as caught:
        OneCollection().options(query)
    assert (caught.value.code, caught.value.message) == (400, message)


@pytest.mark.parametrize(
    ("resource", "field", "message"),
    [
        (
            Resource(
                "", "v1", "pods", "Pod", True, builtin=True, selectable_fields=("spec.nodeName",)
            ),
            "a",
            "field label not supported: a",
        ),
        (
            Resource(
                "",
                "v1",
                "nodes",
                "Node",
                False,
                builtin=True,
                selectable_fields=("spec.unschedulable",),
            ),
            "metadata.namespace",
            "field label not supported: metadata.namespace",
        ),
        (
            Resource("", "v1", "configmaps", "ConfigMap", True, builtin=True),
            "a",
            '"a" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (
            Resource(
                "batch",
                "v1",
                "jobs",
                "Job",
                True,
                builtin=True,
                selectable_fields=("status.successful",),
            ),
            "a",
            'field label "a" not supported for Job',
        ),
        (
            Resource("clu.io", "v1", "clus", "Clu", False),
            "metadata.namespace",
            "field label not supported: metadata.namespace",
        ),
    ],
)
def test_an_unknown_field_is_refused_as_the_kind_refuses_it(
    resource: Resource, field: str, message: str
) -> None:
    """Custom resources, built-ins with fields of their own, and plain built-ins word it apart."""
    with pytest.raises(ApiError) as caught:
        OneCollection(resource).options(f"fieldSelector={field}%3Dx")
    assert (caught.value.code, caught.value.message) == (400, message)


@pytest.mark.parametrize("text", ["1", "true", "", "no", "maybe", "TRUE"])
def test_any_text_but_0_and_false_is_true(text: str) -> None:
    """So ``allowWatchBookmarks=no`` allows them."""
    assert truthy(text)


@pytest.mark.parametrize("text", ["0", "false", "False", None])
def test_0_and_false_and_absence_are_false(text: str | None) -> None:
    """In any case of letters."""
    assert not truthy(text)


def test_without_the_watchlist_gate_initial_events_cannot_be_asked_for() -> None:
    """And a watch from nothing gets its objects, but no mark after them."""
    collection = OneCollection(watch_list=False)
    with pytest.raises(ApiError) as caught:
        collection.options("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "watch")
    assert caught.value.code == 422
    assert "WatchList feature gate" in caught.value.message
    options = collection.options("allowWatchBookmarks=true", "watch")
    assert options.send_initial_events
    assert not options.initial_events_end


def test_a_shard_selector_is_ignored_where_the_gate_is_off() -> None:
    """Even garbage selects everything."""
    collection = OneCollection()
    collection.put("ns/a")
    options = collection.options("shardSelector=garbage")
    assert len(list_versions(collection.caches, WIDGETS, "", options).versions) == 1


def test_the_first_of_a_repeated_parameter_counts() -> None:
    """As on the real server."""
    request = Request("GET", "/", (("limit", "3"), ("limit", "abc")))
    assert parse_list_options(request, WIDGETS, "list", ReadSettings()).limit == 3


def _token(content: str) -> str:
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def test_a_token_is_the_recorded_text() -> None:
    """base64url without padding, a slash before the start if it comes from the cache."""
    token = ContinueToken(469, "ns2/p0\0")
    assert token.encode(from_cache=True) == (
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NDY5LCJzdGFydCI6Ii9uczIvcDBcdTAwMDAifQ"
    )
    assert ContinueToken(-1, "ns2/p0\0").encode(from_cache=False) == (
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoibnMyL3AwXHUwMDAwIn0"
    )


@pytest.mark.parametrize("from_cache", [True, False])
def test_a_token_is_read_back_as_it_was_written(from_cache: bool) -> None:
    """With the slash or without."""
    token = ContinueToken(469, "ns2/p0\0")
    assert parse_continue(token.encode(from_cache=from_cache)) == token


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("!!!", "illegal base64 data at input byte 0"),
        ("a", "illegal base64 data at input byte 0"),
        (_token("hello world!") + "=", "illegal base64 data at input byte 16"),
        ("garbage", r"invalid character '\u0081' looking for beginning of value"),
        (_token("é"), "invalid character 'Ã' looking for beginning of value"),
        (_token("hello"), "invalid character 'h' looking for beginning of value"),
        (_token("{"), "unexpected end of JSON input"),
        (_token("{} x"), "invalid character 'x' after top-level value"),
        (_token('{"a"}'), "invalid character '}' after object key"),
        (
            _token("[]"),
            "json: cannot unmarshal array into Go value of type storage.continueToken",
        ),
        (
            _token('"x"'),
            "json: cannot unmarshal string into Go value of type storage.continueToken",
        ),
        (
            _token("1"),
            "json: cannot unmarshal number into Go value of type storage.continueToken",
        ),
        (_token("null"), "server does not recognize this encoded version "),
        (_token("{}"), "server does not recognize this encoded version "),
        (_token('{"v":"v2"}'), "server does not recognize this encoded version v2"),
        (
            _token('{"v":1}'),
            "json: cannot unmarshal number into Go struct field continueToken.v of type string",
        ),
        (
            _token('{"v":"meta.k8s.io/v1"}'),
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (
            _token('{"v":"meta.k8s.io/v1","rv":5}'),
            "encoded start key empty (version meta.k8s.io/v1)",
        ),
        (
            _token('{"v":"meta.k8s.io/v1","rv":"5"}'),
            "json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
        ),
        (_token('{"v":"meta.k8s.io/v1","rv":5,"start":"../x"}'), "../x"),
    ],
)
def test_a_bad_token_is_refused_in_the_recorded_words(text: str, why: str) -> None:
    """Each complaint was recorded of a kube-apiserver 1.36.3."""
    with pytest.raises(ApiError) as caught:
        parse_continue(text)
    assert caught.value.code == 400
    assert caught.value.message == f"invalid continue token: continue key is not valid: {why}"
