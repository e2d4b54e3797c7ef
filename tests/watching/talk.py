"""The pure protocol, spoken to answer by answer."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import TypeVar

from dyninformer.resource import GroupVersionResource
from dyninformer.store.store import Store
from dyninformer.watching import protocol
from dyninformer.watching.states import (
    Answer,
    Ask,
    Batch,
    Begin,
    ChangeType,
    CrdSeen,
    Due,
    Effect,
    Failed,
    Memory,
    Opened,
    PageEnd,
    Refused,
    Scope,
    State,
    StatusError,
    Want,
    WatchEvent,
    WatchEvents,
)

T = TypeVar("T")

WIDGETS = GroupVersionResource("ex.io", "v1", "widgets")
PODS = GroupVersionResource("", "v1", "pods")
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.ex.io"


_STORE = Store(WIDGETS)


def event(name: str, version: str, type_: ChangeType = "ADDED", uid: str = "") -> WatchEvent:
    """What happened to a widget."""
    metadata = {"name": name, "namespace": "default", "uid": uid or name}
    metadata["resourceVersion"] = version
    return type_, _STORE.receive(json.dumps({"metadata": metadata}).encode())


def events(*versions: str) -> WatchEvents:
    """An ADDED for each version, of an object that is named for it."""
    return [event(f"w{version or 'none'}", version) for version in versions]


def refused(
    code: int, *, reason: str = "", message: str = "no", name: str = "", after: float | None = None
) -> Refused:
    """A refusal with a Status."""
    return Refused(StatusError(code, reason, message, name), after)


class Talk:
    """The protocol with a clock, and everything it wanted so far."""

    def __init__(
        self, *, seed: int = 1, scope: Scope | None = None, crd: CrdSeen | None = None
    ) -> None:
        self.now = 1000.0
        self.random = Random(seed)
        self.state: State = protocol.initial(scope or Scope(gvr=WIDGETS))
        self.effects: list[Effect] = []
        self.asked: list[tuple[float, Want]] = []
        if crd is not None:
            self.say(crd)

    @property
    def memory(self) -> Memory:
        """What is remembered now."""
        return self.state.memory

    def say(self, answer: Answer) -> tuple[Effect, ...]:
        """One answer; the effects of it."""
        self.state, effects = protocol.step(self.state, answer, self.now, self.random)
        self.effects += effects
        self.asked += [(self.now, each.want) for each in effects if isinstance(each, Ask)]
        return effects

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def when_due(self) -> tuple[Effect, ...]:
        """Let time pass until the protocol's moment has come, and say so."""
        moment = protocol.due(self.state)
        assert moment is not None, self.state
        self.now = max(self.now, moment)
        return self.say(Due())

    def want(self, kind: type[T]) -> T:
        """What is asked for now, which must be of this kind."""
        assert protocol.asks(self.state), self.state
        found = self.asked[-1][1]
        assert isinstance(found, kind), found
        return found

    @property
    def reads_credentials(self) -> bool:
        """The request that is under way begins with reading the credentials anew."""
        assert protocol.asks(self.state), self.state
        found = next(each for each in reversed(self.effects) if isinstance(each, Ask))
        return found.fresh_credentials

    def in_state(self, kind: type[T]) -> T:
        """The state, which must be of this kind."""
        assert isinstance(self.state, kind), self.state
        return self.state

    def reason(self) -> str:
        """Why it last failed."""
        return next(each for each in reversed(self.effects) if isinstance(each, Failed)).reason

    # Usual ways.

    def begin(self) -> Talk:
        """Ask for the first time."""
        self.say(Begin())
        return self

    def stream(self, version: str = "10") -> Talk:
        """Answer a streaming list with two objects and its mark."""
        self.say(Opened())
        self.say(Batch(events=events("7", "8"), version="8"))
        self.say(Batch(version=version, mark=True, live=True))
        return self

    def list(self, version: str = "10") -> Talk:
        """Answer a list in one page."""
        self.say(Opened())
        self.say(Batch(events=events("7", "8"), version="8"))
        self.say(PageEnd(version, items=2))
        return self

    def watch(self) -> Talk:
        """Answer a watch with its head."""
        self.say(Opened())
        return self


def lister(**fields: object) -> Talk:
    """A talk with a server that knows no streaming lists."""
    scope = replace(Scope(gvr=WIDGETS, watch_list=False), **fields)  # type: ignore[arg-type]
    return Talk(scope=scope)
