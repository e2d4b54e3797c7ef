"""What is known of a resource, for those that show it."""

from __future__ import annotations

import pytest

from dyninformer import DynamicSharedInformerFactory, GroupVersionResource
from dyninformer.discovery.declared import Declared, declared
from dyninformer.discovery.known import AGE, Known
from dyninformer.errors import UnreachableError
from dyninformer.testing import ApiServer
from tests.frames.objects import CERTIFICATES, CRD, PODS


class Server:
    """Says what it is told to say."""

    def __init__(self) -> None:
        self.says: Declared | None = None
        self.asked = 0

    def ask(self, _: float) -> Declared:
        """An answer, or none."""
        self.asked += 1
        if self.says is None:
            raise UnreachableError("it is away")
        return self.says


def test_what_was_learned_is_kept_when_the_server_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """And it is not asked again at once."""
    now = [100.0]
    monkeypatch.setattr("dyninformer.discovery.known.time.monotonic", lambda: now[0])
    server = Server()
    found = Known(CERTIFICATES, server.ask)
    assert found.columns() == (AGE,)
    assert found.schema() is None
    assert server.asked == 1
    server.says = declared(CRD, CERTIFICATES)
    assert found.columns() == (AGE,)
    now[0] += 11
    assert found.columns()[0].name == "Ready"
    server.says = None
    assert found.columns()[0].name == "Ready"
    assert found.schema()["properties"]["spec"]["type"] == "object"
    assert found.namespaced() is True


def test_of_what_is_built_in_everybody_knows_the_columns() -> None:
    """Whether it is namespaced, discovery knows."""
    found = Known(PODS, scope=lambda: True)
    assert [each.name for each in found.columns()][:2] == ["Status", "Restarts"]
    assert found.namespaced() is True
    assert Known(PODS).namespaced() is None


def test_discovery_gives_the_schema_and_the_scope() -> None:
    """Of the version that is asked for; nothing of what is built in."""
    with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
        server.install("examples/crd")
        discovery = factory.discovery
        schema = discovery.schema(CERTIFICATES)
        assert schema["properties"]["spec"]["properties"]["dnsNames"]["type"] == "array"
        assert discovery.schema(PODS) == {}
        assert discovery.declared(CERTIFICATES).namespaced is True
        blocks = GroupVersionResource("crd.projectcalico.org", "v1", "ipamblocks")
        assert Known.by(discovery, blocks).namespaced() is False
        assert Known.by(discovery, PODS).namespaced() is True


def test_what_no_crd_says_is_not_declared() -> None:
    """Neither is anything of a version that it does not have."""
    assert declared({"spec": 5}, CERTIFICATES) == Declared()
    other = GroupVersionResource(CERTIFICATES.group, "v9", CERTIFICATES.resource)
    assert declared(CRD, other) == Declared()
    bare = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": "x"}}]}}
    assert declared(bare, CERTIFICATES) == Declared()
