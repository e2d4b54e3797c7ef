"""What a conformance test holds in its hands: a server, and one collection on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dyninformer.testing.api_server import ApiServer
from dyninformer.testing.control_plane import ControlPlane
from dyninformer.types import Object
from tests.conformance import shapes
from tests.conformance.wire import Answer, Wire


@dataclass(frozen=True)
class Cluster:
    """A server, and connections to it as several users."""

    kind: Literal["embedded", "real"]
    server: ApiServer | ControlPlane
    admin: Wire
    alice: Wire
    """Known to the server, and allowed nothing but discovery."""
    impostor: Wire
    """With a token that the server does not know."""
    anonymous: Wire


@dataclass(frozen=True)
class Collection:
    """The widgets of one namespace that no other test uses."""

    api: Wire
    namespace: str
    path: str

    def create(self, obj: Object) -> Object:
        """Create an object, as the server then stored it."""
        answer = self.api.post(self.path, obj)
        assert answer.status == 201, answer.text
        created: Object = answer.json
        return created

    def fill(self, *names: str, **spec: Any) -> list[Object]:
        """Create one widget for each name, in this order."""
        return [self.create(shapes.widget(name, **spec)) for name in names]

    def at(self, name: str) -> str:
        """The path of an object."""
        return f"{self.path}/{name}"

    def version(self) -> str:
        """The resourceVersion that a list has now."""
        return self.api.get(self.path).version

    def merge(self, name: str, patch: Object) -> Answer:
        """Apply a merge patch that must succeed."""
        answer = self.api.patch(self.at(name), patch)
        assert answer.status == 200, answer.text
        return answer
