"""A small cluster and its API, for the tests of this room."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dyninformer.testing.api.access import UNSECURED, Access
from dyninformer.testing.api.router import Api
from dyninformer.testing.clock import ManualClock
from dyninformer.testing.cluster.cluster import Cluster
from dyninformer.testing.messages import Request, Response, Stream
from dyninformer.types import Object
from tests.testing.api.golden import body_text, custom_resource

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/ex.io/v1/namespaces/ns1/widgets"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def open_to_all() -> Access:
    """Asks nobody for a token: everybody may do all."""
    access = Access()
    access.anonymous = UNSECURED
    return access


class Asker:
    """Asks an API, with defaults that keep tests short."""

    def __init__(self, access: Access | None = None) -> None:
        self.clock = ManualClock()
        self.cluster = Cluster(self.clock, seed=1)
        self.api = Api(self.cluster, access or open_to_all())

    def __call__(
        self,
        method: str,
        path: str,
        obj: object = None,
        *,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        **query: str,
    ) -> Response:
        """The response to one request."""
        if body is None:
            body = b"" if obj is None else json.dumps(obj).encode()
        request = Request(method, path, tuple(query.items()), headers or {}, body)
        answer = self.api.handle(request)
        assert isinstance(answer, Response), answer
        return answer

    def get(self, path: str, accept: str = "application/json", **query: str) -> Any:
        """The JSON that a GET gives."""
        request = Request("GET", path, tuple(query.items()), {"accept": accept})
        answer = self.api.handle(request)
        assert isinstance(answer, Response), answer
        assert answer.status == 200, body_text(answer)
        return json.loads(body_text(answer))

    def create(self, path: str, obj: Object) -> Object:
        """Create an object."""
        answer = self("POST", path, obj)
        assert answer.status == 201, body_text(answer)
        created: Object = json.loads(body_text(answer))
        return created

    def refused(self, method: str, path: str, obj: object = None, **more: Any) -> Object:
        """The Status of a refusal."""
        status: Object = json.loads(body_text(self(method, path, obj, **more)))
        assert status["kind"] == "Status"
        return status

    def watch(self, path: str, accept: str = "application/json", **query: str) -> Stream:
        """An open watch."""
        items = (("watch", "1"), *query.items())
        answer = self.api.handle(Request("GET", path, items, {"accept": accept}))
        assert not isinstance(answer, Response), body_text(answer)
        return answer


def lines(stream: Stream) -> list[Object]:
    """What a watch has to say now."""
    return [json.loads(line) for piece in stream.take() for line in piece.splitlines()]


def widget(name: str, **spec: object) -> Object:
    """A widget."""
    return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def ask() -> Asker:
    """A cluster that serves widgets, and asks nobody for a token."""
    asker = Asker()
    asker.create(CRDS, custom_resource("ex.io", "widgets", "Widget", scale=True))
    asker.create("/api/v1/namespaces", {"metadata": {"name": "ns1"}})
    return asker
