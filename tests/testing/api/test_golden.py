"""What a real kube-apiserver answered is answered here, word for word."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from dyninformer.testing.api.access import MASTERS, Access
from dyninformer.testing.api.router import Api
from dyninformer.testing.clock import ManualClock
from dyninformer.testing.cluster.cluster import Cluster
from dyninformer.testing.messages import Request, Response
from dyninformer.types import Object
from tests.testing.api.golden import Replay, body_text, custom_resource, place, recordings
from tests.testing.cluster.small_cluster import THING

_RECORDED_AT = datetime(2026, 11, 18, 9, 37, 47, tzinfo=UTC).timestamp()
_THINGS = custom_resource("wr.io", "things", "Thing", scale=True, schema=THING)
_MULTS = custom_resource(
    "mult.io",
    "mults",
    "Mult",
    versions=("v1", "v2"),
    schema={
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    },
)


class _World:
    """A cluster with the CRDs and namespaces of the recordings, and their users."""

    def __init__(self) -> None:
        self.cluster = Cluster(ManualClock(_RECORDED_AT), seed=1)
        self.access = Access()
        self.access.add_user("admin", groups=[MASTERS], token="<token>")
        self.api = Api(self.cluster, self.access)
        self.replay = Replay(self.api)
        for crd in (
            custom_resource("ex.io", "widgets", "Widget", scale=True),
            custom_resource("ns.io", "nosts", "Nost", status=False),
            _THINGS,
            _MULTS,
        ):
            self.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        for name in ("ns1", "ns2"):
            self.post("/api/v1/namespaces", {"metadata": {"name": name}})

    def post(self, path: str, obj: Object) -> None:
        """Create an object as admin."""
        body = json.dumps(obj).encode()
        headers = {"authorization": "Bearer <token>"}
        answer = self.api.handle(Request("POST", path, headers=headers, body=body))
        assert isinstance(answer, Response)
        assert answer.status == 201, body_text(answer)


@pytest.fixture
def world() -> _World:
    """A world of its own for each test."""
    return _World()


_NOT_ERRORS_OF_WRITES = {
    # Needs an aggregated API server, a CEL rule, or a body that was not recorded.
    "503 of an unavailable APIService",
    "create invalid: CEL rule",
    "body of 1600000 bytes",
    "body of 2500000 bytes",
    "body of 3300000 bytes",
    "duplicate field, fieldValidation=Strict",
    # Their state is reached in the recordings of deletes.
    "delete again",
    "add a finalizer while deleting",
    "create same name while deleting",
    # The order of several violations is Go's of a map.
    "create invalid: schema violations",
}


def test_writes_are_answered_as_recorded(world: _World) -> None:
    """Creates, updates, patches, applies and scales are answered as recorded."""
    conflict = recordings("errors")["apply conflict"]
    for name, recording in recordings("writes").items():
        if name == "apply force":
            world.replay.check(conflict)
        world.replay.check(recording)


def test_refusals_are_worded_as_recorded(world: _World) -> None:
    """What cannot be done is refused in the words that were recorded."""
    for name, recording in recordings("writes").items():
        if not name.startswith("apply"):
            world.replay.check(recording)
    world.post(
        "/apis/mult.io/v1/namespaces/ns1/mults",
        {"apiVersion": "mult.io/v1", "kind": "Mult", "metadata": {"name": "two"}},
    )
    world.post(
        "/apis/ns.io/v1/namespaces/ns1/nosts",
        {"apiVersion": "ns.io/v1", "kind": "Nost", "metadata": {"name": "a"}},
    )
    for name, recording in recordings("errors").items():
        if name not in _NOT_ERRORS_OF_WRITES and not name.startswith("apply conflict"):
            world.replay.check(recording)


class TestReads:
    """Other representations of two objects, placed as they were recorded."""

    @pytest.fixture(autouse=True)
    def _objects(self, world: _World) -> None:
        for topic, name in (
            ("table", "Table list"),
            ("partial-metadata", "PartialObjectMetadata get"),
        ):
            body = json.loads(recordings(topic)[name].body)
            for partial in [row["object"] for row in body["rows"]] if "rows" in body else [body]:
                metadata = dict(partial["metadata"])
                obj = {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": metadata, "spec": {}}
                place(world.cluster, "ex.io", "widgets", obj)
        for extra in range(4):
            world.post(
                "/apis/ex.io/v1/namespaces/ns1/widgets",
                {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": f"x{extra}"}},
            )

    @pytest.mark.parametrize(
        ("topic", "name"),
        [
            *(
                ("table", name)
                for name in (
                    "Table list",
                    "Table list includeObject=None",
                    "Table list includeObject=Object",
                    "Table list includeObject=Bogus",
                    "Table of one object",
                )
            ),
            *(
                ("partial-metadata", name)
                for name in (
                    "PartialObjectMetadataList list",
                    "PartialObjectMetadata accepted for a list",
                    "PartialObjectMetadata get",
                    "PartialObjectMetadataList asked for one object",
                )
            ),
            *(
                ("accept", name)
                for name in recordings("accept")
                if name.startswith(("list", "pretty"))
                and name != "list Accept: application/vnd.kubernetes.protobuf"
            ),
        ],
    )
    def test_an_object_is_shown_as_recorded(self, world: _World, topic: str, name: str) -> None:
        """Tables, metadata alone, YAML and indented JSON are those recorded."""
        world.replay.check(recordings(topic)[name])


class TestAccess:
    """The users of the recordings."""

    @pytest.mark.parametrize(
        "name",
        [name for name in recordings("auth") if name.startswith("403 ") and "Account" not in name],
    )
    def test_the_forbidden_is_worded_as_recorded(self, world: _World, name: str) -> None:
        """A 403 has the words that were recorded."""
        world.access.add_user("alice", groups=["devs"], token="<alice>")
        recording = recordings("auth")[name]
        headers = {**recording.request["headers"], "Authorization": "Bearer <alice>"}
        recording.request["headers"].update(headers)
        world.replay.check(recording)

    @pytest.mark.parametrize(
        "name",
        [
            "no token (anonymous)",
            "malformed Authorization",
            "anonymous /apis",
            "anonymous /healthz",
            "anonymous /nosuch",
        ],
    )
    def test_nobody_is_answered_as_recorded(self, world: _World, name: str) -> None:
        """Whoever bears no token is answered as recorded."""
        world.replay.check(recordings("auth")[name])


class TestDiscovery:
    """Discovery of ex.io."""

    @pytest.mark.parametrize("name", ["legacy group", "legacy group version", "aggregated v9 only"])
    def test_a_group_is_described_as_recorded(self, world: _World, name: str) -> None:
        """A group, its version and what is not served are described as recorded."""
        world.replay.check(recordings("discovery")[name])

    def test_the_aggregated_form_is_as_recorded(self, world: _World) -> None:
        """The groups of CRDs stand in the aggregated list as recorded; the Etag saves the rest."""
        recording = recordings("discovery")["aggregated /apis"]
        answer = world.replay.ask(recording)

        found = {item["metadata"]["name"]: item for item in json.loads(body_text(answer))["items"]}
        expected = {item["metadata"]["name"]: item for item in recording.response["body"]["items"]}
        assert found["ex.io"] == expected["ex.io"]
        headers, recorded = dict(answer.headers), dict(recording.response["headers"])
        etag = headers.pop("Etag")
        assert (len(etag), etag.strip('"').isupper()) == (130, True)
        assert headers == {name: recorded[name] for name in headers}

        request = recording.request
        again = Request(
            "GET",
            "/apis",
            headers={
                "authorization": "Bearer <token>",
                "accept": request["headers"]["Accept"],
                "if-none-match": etag,
            },
        )
        unchanged = world.api.handle(again)
        assert isinstance(unchanged, Response)
        assert (unchanged.status, unchanged.body) == (304, b"")
        assert dict(unchanged.headers)["Etag"] == etag
