"""Programs can tell what kind of trouble an informer is in, without reading the sentence."""

from __future__ import annotations

import pytest

from dyninformer.watching.states import Answer, Batch, Document, Lost, Scope
from dyninformer.watching.status import InformerTrouble
from tests.watching.talk import PODS, Talk, refused


def listing(scope: Scope | None = None) -> Talk:
    """A talk whose first answer is due, to a list that is no stream."""
    return Talk(scope=scope or Scope(gvr=PODS, watch_list=False)).begin()


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (Lost("connection refused"), "unreachable"),
        (refused(403), "forbidden"),
        (refused(429), "overloaded"),
        (refused(503), "server-error"),
        (refused(400), "bad-request"),
        (refused(405), "bad-request"),
        (refused(422), "bad-request"),
        (refused(302), "bad-answer"),
        (Batch(broken="no JSON"), "bad-answer"),
    ],
)
def test_each_failure_has_its_kind(answer: Answer, trouble: str) -> None:
    """Beside the sentence."""
    talk = listing()
    talk.say(answer)
    assert talk.memory.health.trouble == trouble
    assert talk.memory.health.reason


def test_refused_credentials_are_told_apart() -> None:
    """Once they were read anew, and refused again."""
    talk = listing()
    talk.say(refused(401))
    assert talk.memory.health.trouble is None
    talk.say(refused(401))
    assert talk.memory.health.trouble is InformerTrouble.UNAUTHORIZED


def test_what_is_not_there_is_not_found_and_what_has_no_namespace_is_said() -> None:
    """Both begin with a 404."""
    talk = listing()
    talk.say(refused(404))
    talk.say(Document({"kind": "APIResourceList", "resources": []}))
    assert talk.memory.health.trouble is InformerTrouble.NOT_FOUND
    talk = listing(Scope(gvr=PODS, namespace="prod", watch_list=False))
    talk.say(refused(404))
    entry = {"name": "pods", "namespaced": False}
    talk.say(Document({"kind": "APIResourceList", "resources": [entry]}))
    assert talk.memory.health.trouble is InformerTrouble.CLUSTER_SCOPED


def test_it_is_over_with_the_reason() -> None:
    """When the watch is open again."""
    talk = listing()
    talk.say(refused(503))
    talk.when_due()
    talk.list().watch()
    assert (talk.memory.health.trouble, talk.memory.health.reason) == (None, "")
