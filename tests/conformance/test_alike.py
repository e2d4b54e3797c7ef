"""The same request on the same state: both servers answer alike, byte for byte.

What no two servers can share (uids, times, versions, ages) is masked first.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.cluster import Cluster
from tests.conformance.shapes import CRDS, widget
from tests.conformance.wire import (
    APPLY,
    JSON_PATCH,
    MERGE,
    PARTIAL,
    PARTIAL_LIST,
    STRATEGIC,
    TABLE,
    Answer,
)

pytestmark = pytest.mark.real

NAMESPACE = "alike"
WIDGETS = f"/apis/ex.io/v1/namespaces/{NAMESPACE}/widgets"
BLOBS = f"/apis/loose.io/v1/namespaces/{NAMESPACE}/blobs"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
DRY = {"dryRun": "All"}
YAML = "application/yaml"


@dataclass(frozen=True)
class Ask:
    """One request; its name is its id."""

    name: str
    method: str = "GET"
    path: str = WIDGETS
    params: Mapping[str, object] = field(default_factory=dict)
    body: Any = None
    content_type: str | None = None
    accept: str | None = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def _patch(name: str, body: Any, content_type: str = MERGE, **params: object) -> Ask:
    return Ask(
        name, "PATCH", f"{WIDGETS}/a", {**DRY, **params}, body=body, content_type=content_type
    )


def _create(name: str, body: Any, **params: object) -> Ask:
    return Ask(name, "POST", WIDGETS, {**DRY, **params}, body=body)


def _named(name: str, **metadata: object) -> dict[str, Any]:
    obj = widget(name)
    obj["metadata"] |= metadata
    return obj


ASKS = [
    # Reading
    Ask("get", path=f"{WIDGETS}/a"),
    Ask("get a missing object", path=f"{WIDGETS}/nope"),
    Ask("get at a version that is no number", path=f"{WIDGETS}/a", params={"resourceVersion": "x"}),
    Ask("list"),
    Ask("list in yaml", accept=YAML),
    Ask("list prettily", params={"pretty": "true"}),
    Ask("list the first", params={"limit": 1}),
    Ask("list none by label", params={"labelSelector": "x=nope"}),
    Ask("list one by label", params={"labelSelector": "tier=back"}),
    Ask("list one page by label", params={"labelSelector": "tier", "limit": 1}),
    Ask("list by a bad label", params={"labelSelector": "a b c"}),
    Ask("list by a bad operator", params={"labelSelector": "a in b"}),
    Ask("list by a bad set", params={"labelSelector": "a in (b"}),
    Ask("list by a bad key", params={"labelSelector": "a/b/c=d"}),
    Ask("list by a long value", params={"labelSelector": f"a={'x' * 64}"}),
    Ask("list by field", params={"fieldSelector": "spec.color=red"}),
    Ask("list by a bad field", params={"fieldSelector": "spec.nope=red"}),
    Ask("list by half a field", params={"fieldSelector": "a"}),
    Ask("list by an escaped field", params={"fieldSelector": r"metadata.name=a\,b"}),
    Ask("list by a bad escape", params={"fieldSelector": r"metadata.name=a\b"}),
    Ask("list with a bad token", params={"continue": "%%%"}),
    Ask("list with a token of another kind", params={"continue": "eyJ2IjoidjEifQ"}),
    Ask("list with a token without a start", params={
        "continue": base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":5}').decode().rstrip("=")
    }),
    Ask("list with a token that climbs", params={
        "continue": base64.urlsafe_b64encode(
            b'{"v":"meta.k8s.io/v1","rv":5,"start":"../x"}').decode().rstrip("=")
    }),
    Ask("list with a bad boolean", params={"allowWatchBookmarks": "maybe"}),
    Ask("list with a huge limit", params={"limit": str(1 << 70)}),
    Ask("list an unknown namespace", path="/apis/ex.io/v1/namespaces/void/widgets"),
    Ask("table", accept=TABLE),
    Ask("table of one", path=f"{WIDGETS}/a", accept=TABLE),
    Ask("table with objects", params={"includeObject": "Object", "limit": 1}, accept=TABLE),
    Ask("table of nothing", params={"labelSelector": "x=nope"}, accept=TABLE),
    Ask("table of a missing object", path=f"{WIDGETS}/nope", accept=TABLE),
    Ask("table of namespaces", path=f"/api/v1/namespaces/{NAMESPACE}", accept=TABLE),
    Ask("table of config maps", path=CONFIG_MAPS, accept=TABLE),
    Ask("metadata list", accept=PARTIAL_LIST),
    Ask("metadata of one", path=f"{WIDGETS}/a", accept=PARTIAL),
    Ask("metadata of a list as one", accept=PARTIAL),
    Ask("metadata of one as a list", path=f"{WIDGETS}/a", accept=PARTIAL_LIST),
    Ask("metadata of a config map", path=f"{CONFIG_MAPS}/c", accept=PARTIAL),
    Ask("metadata list of config maps", path=CONFIG_MAPS, accept=PARTIAL_LIST),
    Ask("html", accept="text/html"),
    Ask("cbor", accept="application/cbor"),
    Ask("get in yaml", path=f"{WIDGETS}/a", accept=YAML),
    Ask("error in yaml", path=f"{WIDGETS}/nope", accept=YAML),
    Ask("status of an object", path=f"{WIDGETS}/a/status"),
    Ask("scale of an object", path=f"{WIDGETS}/a/scale"),
    Ask("an unknown subresource", path=f"{WIDGETS}/a/nope"),
    Ask("status where there is none", path=f"{BLOBS}/b/status"),
    Ask("an object without fields", path=f"{BLOBS}/b"),
    Ask("a namespace", path=f"/api/v1/namespaces/{NAMESPACE}"),
    Ask("a config map", path=f"{CONFIG_MAPS}/c"),
    Ask("config maps", path=CONFIG_MAPS),
    Ask("a missing namespace", path="/api/v1/namespaces/void"),
    Ask("the roles of a namespace", path=(
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles")),
    # Discovery
    Ask("group", path="/apis/ex.io"),
    Ask("an unknown group", path="/apis/nope.io"),
    Ask("an unknown version", path="/apis/ex.io/v7"),
    Ask("health", path="/healthz"),
    Ask("liveness in words", path="/livez/ping"),
    # Watching what cannot be watched
    Ask("watch from a bad version", params={"watch": "1", "resourceVersion": "x"}),
    Ask("watch by a bad label", params={"watch": "1", "labelSelector": "a b"}),
    Ask("watch by a bad field", params={"watch": "1", "fieldSelector": "spec.nope=1"}),
    Ask("watch for a bad time", params={"watch": "1", "timeoutSeconds": "x"}),
    Ask("watch in yaml", params={"watch": "1"}, accept=YAML),
    Ask("watch in html", params={"watch": "1"}, accept="text/html"),
    Ask("watch with a token", params={"watch": "1", "continue": "x"}),
    Ask("watch with a match", params={"watch": "1", "resourceVersionMatch": "Exact"}),
    Ask("stream from version abc", params={
        "watch": "1", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan",
        "resourceVersion": "abc"}),
    Ask("watch from version 1", params={"watch": "1", "resourceVersion": "1"}),
    # Creating
    _create("create", widget("new", size=1)),
    _create("create with everything", _named(
        "new", labels={"a": "b"}, annotations={"c": "d"}, finalizers=["x.io/f"])),
    _create("create what is there", widget("a")),
    _create("create without a name", {"apiVersion": "ex.io/v1", "kind": "Widget"}),
    _create("create with a bad name", widget("Bad_Name")),
    _create("create with a bad label key", _named("new", labels={"a/b/c": "d"})),
    _create("create with a bad label value", _named("new", labels={"a": "-"})),
    _create("create with a bad annotation", _named("new", annotations={"a b": "c"})),
    _create("create with labels that are no map", _named("new", labels=["a"])),
    _create("create with a label that is no text", _named("new", labels={"a": 1})),
    _create("create with a bad finalizer", _named("new", finalizers=["a b"])),
    _create("create with a bare finalizer", _named("new", finalizers=["bare"])),
    _create("create with two controllers", _named("new", ownerReferences=[
        {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "1", "controller": True},
        {"apiVersion": "v1", "kind": "X", "name": "y", "uid": "2", "controller": True}])),
    _create("create with an owner that has more", _named("new", ownerReferences=[{
        "apiVersion": "v1", "kind": "K", "name": "n", "uid": "1", "controller": False, "x": 1}])),
    _create("create with an owner of wrong types", _named("new", ownerReferences=[{"uid": 5}])),
    _create("create with an owner that is null", _named("new", ownerReferences=[None])),
    _create("create with managers of wrong types", _named("new", managedFields=[{"manager": 5}])),
    _create("create with unknown metadata", _named("new", zoo=1, foo=2)),
    _create("create with an owner of nothing", _named("new", ownerReferences=[{}])),
    _create("create with a version", _named("new", resourceVersion="5")),
    _create("create elsewhere", _named("new", namespace="other")),
    _create("create another kind", {**widget("new"), "kind": "Other"}),
    _create("create another version", {**widget("new"), "apiVersion": "ex.io/v2"}),
    _create("create another version strictly", {
        **widget("new"), "apiVersion": "ex.io/v2"}, fieldValidation="Strict"),
    _create("create another group", {**widget("new"), "apiVersion": "other.io/v1"}),
    _create("create a list", b"[1]"),
    _create("create nothing", b""),
    _create("create half", b'{"apiVersion":'),
    _create("create with metadata that is text", {
        "apiVersion": "ex.io/v1", "kind": "Widget", "metadata": "x"}),
    _create("create with a spec that is text", {**widget("new"), "spec": "x"}),
    _create("create with replicas that are text", widget("new", replicas="x")),
    _create("create with half a replica", widget("new", replicas=1.5)),
    _create("create with a number beyond all formats", widget("new", size=1e30)),
    _create("create what is bad in a way nobody knows", widget("new", nope=1, size="x")),
    _create("create with a field nobody knows", widget("new", nope=1)),
    _create("create with fields nobody knows", {**widget("new", nope=1), "top": {"x": 1}}),
    _create("create strictly", widget("new", nope=1), fieldValidation="Strict"),
    _create("create strictly, twice the same", (
        b'{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"name":"new"},'
        b'"spec":{"size":1,"size":2}}'), fieldValidation="Strict"),
    _create("create warily, twice the same", (
        b'{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"name":"new"},'
        b'"spec":{"size":1,"size":2}}')),
    _create("create as ignorant", widget("new", nope=1), fieldValidation="Ignore"),
    _create("create with bad validation", widget("new"), fieldValidation="Nope"),
    _create("create in a dream", widget("new"), dryRun="Dream"),
    _create("create by a long manager", widget("new"), fieldManager="x" * 129),
    Ask("create in a missing namespace", "POST", "/apis/ex.io/v1/namespaces/void/widgets",
        DRY, widget("new")),
    Ask("create as text", "POST", WIDGETS, DRY, b"x", "text/plain"),
    Ask("create as yaml", "POST", WIDGETS, DRY,
        b"apiVersion: ex.io/v1\nkind: Widget\nmetadata: {name: new}\n", YAML),
    Ask("create as bad yaml", "POST", WIDGETS, DRY, b"a: [", YAML),
    *(
        Ask(f"create as bad yaml {number}", "POST", WIDGETS, DRY, raw, YAML)
        for number, raw in enumerate([
            b"a: b: c", b"\n\na: [", b"a: 'x", b"a: &x\nb: *y", b"\ta: 1", b"- a\nb: c",
            b"a: !!int x", b"%x\n---\na: 1", b"a: 1\n---\nb: 2\n", b"a: \0", b"a: &x [*x]",
        ])
    ),
    *(
        Ask(f"create as yaml with {value}", "POST", BLOBS, DRY,
            b"apiVersion: loose.io/v1\nkind: Blob\nmetadata: {name: new}\na: "
            + value.encode() + b"\n", YAML)
        for value in (
            "n", "~", "0o17", "08", "1e3", "1e400", "12:30:45", "2020-01-01", "!foo 5",
            "!!float 5", "!!set {b}", ".inf", "[&x {c: 1}, {<<: *x, d: 2}]", "{1: 2, yes: no}",
        )
    ),
    Ask("create a cluster-scoped object in a namespace", "POST",
        f"/apis/ex.io/v1/namespaces/{NAMESPACE}/globes", DRY, {}),
    Ask("create across namespaces", "POST", "/apis/ex.io/v1/widgets", DRY, widget("new")),
    Ask("create a config map", "POST", CONFIG_MAPS, DRY,
        {"metadata": {"name": "new"}, "data": {"a": "b"}}),
    Ask("create a config map of numbers", "POST", CONFIG_MAPS, DRY,
        {"metadata": {"name": "new"}, "data": {"a": 1}}),
    *(
        Ask(f"create a config map with {json.dumps(metadata)}", "POST", CONFIG_MAPS, DRY,
            {"metadata": {"name": "new", **metadata}, "bar": 1})
        for metadata in (
            {"finalizers": ["bare"]}, {"generation": 1.5}, {"uid": 5}, {"zoo": 1, "foo": {}},
            {"ownerReferences": [{"uid": 5}]},
        )
    ),
    Ask("merge a bad label into a config map", "PATCH", f"{CONFIG_MAPS}/c", DRY,
        {"metadata": {"labels": {"a b": "x"}, "uid": "z", "finalizers": ["a b"]}}, MERGE),
    Ask("create a CRD with a number for a name", "POST", CRDS, DRY,
        {"metadata": {"name": "x"}, "spec": {"names": {"plural": 5}}}),
    Ask("create a namespace", "POST", "/api/v1/namespaces", DRY, {"metadata": {"name": "new"}}),
    Ask("create a namespace with a bad name", "POST", "/api/v1/namespaces", DRY,
        {"metadata": {"name": "New"}}),
    # Changing
    _patch("merge", {"spec": {"size": 9}}),
    _patch("merge nothing", {}),
    _patch("merge a bad value", {"spec": {"size": "x"}}),
    _patch("merge away a required thing", {"spec": None}),
    _patch("merge a stale version", {"metadata": {"resourceVersion": "1"}}),
    _patch("merge a bad version", {"metadata": {"resourceVersion": "x"}}),
    _patch("merge another name", {"metadata": {"name": "z"}}),
    _patch("merge another uid", {"metadata": {"uid": "z"}}),
    _patch("merge a bad label", {"metadata": {"labels": {"a b": "x"}, "uid": "z"}}),
    _patch("merge a bad finalizer", {"metadata": {"finalizers": ["a b", "bare"]}}),
    _patch("merge a bad owner", {"metadata": {"ownerReferences": [{"a": 1}]}}),
    _patch("merge a label that is no text", {"metadata": {"labels": {"a": 5}}}),
    _patch("merge labels that are no map", {"metadata": {"labels": "x"}}),
    _patch("merge a field nobody knows", {"spec": {"nope": 1}}),
    _patch("merge text", b'"x"'),
    _patch("merge half", b"{"),
    _patch("merge by force", {}, force="true"),
    _patch("json patch", [{"op": "add", "path": "/spec/size", "value": 9}], JSON_PATCH),
    _patch("json patch copy", [{"op": "copy", "from": "/spec/color", "path": "/spec/note"}],
           JSON_PATCH),
    _patch("json patch move", [{"op": "move", "from": "/spec/color", "path": "/spec/note"}],
           JSON_PATCH),
    _patch("json patch failing test", [{"op": "test", "path": "/spec/size", "value": 0}],
           JSON_PATCH),
    _patch("json patch missing path", [{"op": "remove", "path": "/spec/nope"}], JSON_PATCH),
    _patch("json patch unknown op", [{"op": "nope", "path": "/spec"}], JSON_PATCH),
    _patch("json patch that is an object", {}, JSON_PATCH),
    _patch("json patch bad index", [{"op": "remove", "path": "/spec/parts/9"}], JSON_PATCH),
    _patch("strategic", {}, STRATEGIC),
    _patch("apply", widget("a", note="n"), APPLY, fieldManager="me"),
    _patch("apply against another", widget("a", color="green"), APPLY, fieldManager="me"),
    _patch("apply by force", widget("a", color="green"), APPLY, fieldManager="me", force="true"),
    _patch("apply by nobody", widget("a"), APPLY),
    _patch("apply without a kind", {"metadata": {"name": "a"}}, APPLY, fieldManager="me"),
    _patch("apply with managed fields", _named("a", managedFields=[{}]), APPLY, fieldManager="me"),
    _patch("apply bad yaml", b"a: [", APPLY, fieldManager="me"),
    Ask("merge a missing object", "PATCH", f"{WIDGETS}/nope", DRY, {}, MERGE),
    Ask("apply a new object", "PATCH", f"{WIDGETS}/new", {**DRY, "fieldManager": "me"},
        widget("new", size=2), APPLY),
    Ask("merge status", "PATCH", f"{WIDGETS}/a/status", DRY,
        {"status": {"phase": "X"}, "spec": {"size": 99}}, MERGE),
    Ask("merge a bad status", "PATCH", f"{WIDGETS}/a/status", DRY, {"status": {"phase": 1}}, MERGE),
    *(
        Ask(f"merge status {value}", "PATCH", f"{WIDGETS}/a/status", DRY, {"status": value}, MERGE)
        for value in ("x", {"replicas": "x"}, {"replicas": -1}, {"selector": 5})
    ),
    Ask("merge scale", "PATCH", f"{WIDGETS}/a/scale", DRY, {"spec": {"replicas": 7}}, MERGE),
    Ask("merge a bad scale", "PATCH", f"{WIDGETS}/a/scale", DRY, {"spec": {"replicas": -1}}, MERGE),
    Ask("put without a version", "PUT", f"{WIDGETS}/a", DRY, widget("a", size=1)),
    Ask("put under another name", "PUT", f"{WIDGETS}/a", DRY, widget("z")),
    Ask("put a missing object", "PUT", f"{WIDGETS}/nope", DRY, _named("nope", resourceVersion="1")),
    Ask("put with an old version", "PUT", f"{WIDGETS}/a", DRY, _named("a", resourceVersion="1")),
    Ask("put with a bad version", "PUT", f"{WIDGETS}/a", DRY, _named("a", resourceVersion="x")),
    Ask("put a collection", "PUT", WIDGETS, {}, {}),
    Ask("patch a collection", "PATCH", WIDGETS, {}, {}, MERGE),
    Ask("strategic patch of a config map", "PATCH", f"{CONFIG_MAPS}/c", DRY,
        {"data": {"x": "y"}}, STRATEGIC),
    Ask("post to an object", "POST", f"{WIDGETS}/a", DRY, {}),
    # Deleting
    Ask("delete dryly", "DELETE", f"{WIDGETS}/a", DRY),
    Ask("delete a missing object", "DELETE", f"{WIDGETS}/nope"),
    Ask("delete with another uid", "DELETE", f"{WIDGETS}/a", {},
        {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "x"}}),
    Ask("delete with another version", "DELETE", f"{WIDGETS}/a", {},
        {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"resourceVersion": "1"}}),
    Ask("delete with a bad policy", "DELETE", f"{WIDGETS}/a", {"propagationPolicy": "X"}),
    Ask("delete with bad options", "DELETE", f"{WIDGETS}/a", {}, b"x"),
    Ask("delete with options of another kind", "DELETE", f"{WIDGETS}/a", {},
        {"kind": "Other", "apiVersion": "v9"}),
    Ask("delete after a bad time", "DELETE", f"{WIDGETS}/a", {**DRY, "gracePeriodSeconds": "x"}),
    Ask("delete the collection dryly", "DELETE", WIDGETS, DRY),
    Ask("delete a bad selection", "DELETE", WIDGETS, {"labelSelector": "a b"}),
    Ask("delete across namespaces", "DELETE", "/apis/ex.io/v1/widgets"),
    Ask("delete a config map dryly", "DELETE", f"{CONFIG_MAPS}/c", DRY),
    # No such thing
    Ask("options", "OPTIONS"),
    Ask("trace", "TRACE"),
    Ask("another method", "BREW"),
    Ask("nowhere", path="/nowhere"),
    Ask("nowhere in core", path="/api/v1/nowhere"),
    Ask("nowhere in a group", path="/apis/ex.io/v1/nowhere"),
    Ask("write to the version", "POST", "/version", {}, {}),
    Ask("the wrong scope", path=f"/apis/ex.io/v1/namespaces/{NAMESPACE}/globes"),
    Ask("a double slash", path="/apis/ex.io/v1//widgets"),
    Ask("a dot path", path=f"{WIDGETS}/../widgets"),
    Ask("an escaped slash", path=f"{WIDGETS}/a%2Fb"),
]  # fmt: skip

_FILLED = {
    WIDGETS: [
        {**widget("a", labels={"tier": "front"}, color="red", size=3, on=True,
                  parts=[{"name": "p", "value": 1}])},
        {**widget("b", labels={"tier": "back"}, color="blue")},
    ],
    BLOBS: [{"apiVersion": "loose.io/v1", "kind": "Blob", "metadata": {"name": "b"}}],
    CONFIG_MAPS: [{"metadata": {"name": "c"}, "data": {"k": "v"}, "binaryData": {"b": "AAE="}}],
}  # fmt: skip


@pytest.fixture(scope="session")
def twins(embedded: Cluster, real: Cluster) -> tuple[Cluster, Cluster]:
    """Both servers, with the same things in the same namespace."""
    for cluster in (embedded, real):
        cluster.admin.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for path, objects in _FILLED.items():
            for obj in objects:
                answer = cluster.admin.post(path, obj)
                assert answer.status == 201, answer.text
    return embedded, real


_MASKS = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
    (r'(resourceVersion[\\"]*: ?[\\"]*)\d+', r"\1RV"),
    (r"(too old resource version: \d+ \()\d+", r"\1RV"),
    (r"(in record \()\d+", r"\1RV"),
    (r'"(?:\d+[smhd])+"', '"AGE"'),
]


def _masked(text: str) -> str:
    for pattern, mask in _MASKS:
        text = re.sub(pattern, mask, text)
    return re.sub(r'("continue": ?")([\w-]+)', _masked_token, text)


def _masked_token(found: re.Match[str]) -> str:
    token = json.loads(base64.urlsafe_b64decode(found[2] + "=" * (-len(found[2]) % 4)))
    return f"{found[1]}{token['v']} {token['start'].lstrip('/')}"


def _told(answer: Answer) -> tuple[int, dict[str, str], list[str]]:
    """What a client can tell of an answer, masked; an ordered list of lines."""
    kept = {
        name: "N" if name == "Content-Length" else value
        for name, value in sorted(answer.headers.items())
        if name not in {"Audit-Id", "Date"}
    }
    return answer.status, kept, _masked(answer.body.decode(errors="replace")).splitlines()


def _known_to_differ() -> list[str]:
    """The requests that the page of differences lists."""
    page = (Path(__file__).parents[2] / "docs" / "differences.md").read_text()
    section = page.partition("## What is answered in other words")[2]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


KNOWN = _known_to_differ()


def test_only_requests_that_are_made_are_listed_as_different() -> None:
    """Every row of the page's second table is a request of this module."""
    assert set(KNOWN) <= {ask.name for ask in ASKS}


@pytest.mark.parametrize("ask", ASKS, ids=str)
def test_both_servers_answer_alike(twins: tuple[Cluster, Cluster], ask: Ask) -> None:
    """Status, headers and body are the same, but for what the page of differences lists."""
    answers = [
        _told(
            cluster.admin.send(
                ask.method,
                ask.path,
                ask.body,
                params=ask.params or None,
                content_type=ask.content_type,
                accept=ask.accept,
                headers=ask.headers,
            )
        )
        for cluster in twins
    ]
    if ask.name in KNOWN:
        assert answers[0] != answers[1], f"docs/differences.md lists {ask.name!r} without need"
    else:
        assert answers[0] == answers[1]
