"""Fields are compared as text, and shard selectors cut a collection by hash."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.testing.cluster.log import GroupResource, Key, Version
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.cluster.selection import field_text, fnv1a, parse_shard_selector
from dyninformer.testing.status import ApiError

from .one_collection import CONFIGMAPS, OneCollection
from .recordings import golden, request_of

_PODS = Resource("", "v1", "pods", "Pod", True, builtin=True)
_NODES = Resource("", "v1", "nodes", "Node", False, builtin=True)
_EVENTS = Resource("", "v1", "events", "Event", True, builtin=True)
_JOBS = Resource("batch", "v1", "jobs", "Job", True, builtin=True)


@pytest.mark.parametrize(
    ("resource", "obj", "field", "text"),
    [
        (_PODS, {}, "metadata.name", "a"),
        (_PODS, {}, "metadata.namespace", "ns"),
        (_PODS, {"spec": {"nodeName": "n1"}}, "spec.nodeName", "n1"),
        (_PODS, {"spec": {}}, "spec.nodeName", ""),
        (_PODS, {}, "spec.hostNetwork", "false"),
        (_PODS, {"spec": {"hostNetwork": True}}, "spec.hostNetwork", "true"),
        (_PODS, {"status": "odd"}, "status.phase", ""),
        (_NODES, {"spec": {}}, "spec.unschedulable", "false"),
        (_EVENTS, {"source": {"component": "kubelet"}}, "source", "kubelet"),
        (_EVENTS, {"reportingComponent": "x"}, "source", "x"),
        (_EVENTS, {"involvedObject": {"kind": "Pod"}}, "involvedObject.kind", "Pod"),
        (_JOBS, {"status": {"succeeded": 2}}, "status.successful", "2"),
        (_JOBS, {}, "status.successful", "0"),
        (_JOBS, {"status": {"list": [1]}}, "status.list", ""),
    ],
)
def test_a_field_is_text(resource: Resource, obj: dict[str, Any], field: str, text: str) -> None:
    """Booleans and numbers as they are written, what is absent or no scalar as nothing."""
    version = Version(GroupResource("", "x"), Key("ns", "a"), 2, {"metadata": {}, **obj})
    assert field_text(version, resource, field) == text


_LOW = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
_HIGH = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"


def _version(uid: str, namespace: str = "ns") -> Version:
    obj: dict[str, Any] = {"metadata": {"uid": uid}}
    return Version(GroupResource("ex.io", "widgets"), Key(namespace, "a"), 2, obj)


@pytest.mark.parametrize(
    ("name", "hashed"), [("ns1", 0x20FC0B19253E64D5), ("ns2", 0x20FC0819253E5FBC)]
)
def test_hashes_are_those_of_the_recordings(name: str, hashed: int) -> None:
    """FNV-1a over the bytes."""
    assert fnv1a(name) == hashed


@pytest.mark.parametrize("half", ["low half", "high half"])
def test_the_recorded_halves_hold_the_recorded_objects(half: str) -> None:
    """Every object of a recorded shard is selected by its selector, and by no other half."""
    recording = next(each for each in golden("sharding-on") if each["name"] == f"list {half}")
    text = request_of(recording).param("shardSelector")
    assert text is not None
    wanted, other = (
        parse_shard_selector(text),
        parse_shard_selector(_HIGH if text == _LOW else _LOW),
    )
    uids = [item["metadata"]["uid"] for item in recording["response"]["body"]["items"]]
    assert uids
    for uid in uids:
        assert wanted.matches(_version(uid))
        assert not other.matches(_version(uid))


def test_ranges_joined_select_what_any_of_them_selects() -> None:
    """Both halves are everything."""
    both = parse_shard_selector(f"{_LOW} || ({_HIGH})")
    assert all(both.matches(_version(f"{number:08x}-uid")) for number in range(100))


def test_the_namespace_can_be_what_is_hashed() -> None:
    """Then all objects of a namespace are in one shard."""
    selector = parse_shard_selector(_LOW.replace(".uid", ".namespace"))
    assert selector.matches(_version("any", namespace="ns1")) == (fnv1a("ns1") < 1 << 63)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{_LOW} ||", 'syntax error at ""'),
        (f"{_LOW} {_LOW}", 'syntax error at "shardRange"'),
        ("shardRange(object.metadata.uid, '0x1", "syntax error at character 32"),
        ("shardRange(object.metadata.uid)", "requires exactly 3 arguments"),
        ("true", "unexpected expression kind 5"),
        ("garbage", "unexpected expression kind 3"),
        ("'text'", "unexpected expression kind 5"),
        ("object.metadata", "unexpected expression kind 7"),
        ("", 'syntax error at ""'),
    ],
)
def test_what_is_no_selector_is_a_500_that_says_so(text: str, why: str) -> None:
    """Without a reason, as the recorded refusals are."""
    with pytest.raises(ApiError) as caught:
        parse_shard_selector(text)
    assert (caught.value.code, caught.value.reason) == (500, None)
    assert caught.value.message.startswith("invalid shard selector: ")
    assert why in caught.value.message


def test_a_built_in_list_says_which_shard_it_is() -> None:
    """Lists of custom resources, and watches, do not."""
    for resource, shown in ((CONFIGMAPS, {"selector": _LOW}), (OneCollection().resource, None)):
        collection = OneCollection(resource, sharding=True)
        collection.put("ns/a", {"metadata": {"name": "a", "uid": "u"}})
        body = collection.body(collection.page(f"shardSelector={_LOW}"))
        assert body["metadata"].get("shardInfo") == shown
