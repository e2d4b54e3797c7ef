"""A collection that is not found (S33)."""

from __future__ import annotations

from typing import Any

import pytest

from dyninformer.watching.states import (
    Absent,
    Answer,
    Apply,
    AskDocument,
    BackingOff,
    Batch,
    Clear,
    CrdSeen,
    Document,
    Ended,
    ListPage,
    Lost,
    Memory,
    Proving,
    Scope,
    StreamState,
    Swap,
)
from tests.watching.talk import CRD_PATH, PODS, WIDGETS, Talk, refused

NO_CRD = refused(404, reason="NotFound", name="widgets.ex.io")
AVAILABLE = CrdSeen(available=True, generation=None)


def groups(*versions: str) -> Document:
    """Discovery of groups, with these versions of ex.io."""
    found = [{"groupVersion": f"ex.io/{version}", "version": version} for version in versions]
    return Document({"kind": "APIGroupList", "groups": [{"name": "ex.io", "versions": found}]})


def resources(*names: str, namespaced: bool = True) -> Document:
    """Discovery of ex.io/v1."""
    found = [{"name": name, "namespaced": namespaced} for name in names]
    return Document({"kind": "APIResourceList", "resources": found})


def crd(scope: str = "Namespaced", served: bool = True, **conditions: str) -> Document:
    """The CRD of widgets."""
    spec = {
        "scope": scope,
        "versions": [{"name": "v1", "served": served}, {"name": "v2", "served": True}],
    }
    found: list[dict[str, Any]] = [
        {"type": kind, "status": status, "message": "names clash"}
        for kind, status in conditions.items()
    ]
    return Document(
        {"kind": "CustomResourceDefinition", "spec": spec, "status": {"conditions": found or None}}
    )


def held(*, namespace: str = "", crds: CrdSeen = AVAILABLE) -> Talk:
    """Something is held, the stream ended, and the next request is answered with 404."""
    talk = Talk(scope=Scope(gvr=WIDGETS, namespace=namespace), crd=crds).begin().stream("10")
    talk.wait(10)
    talk.say(Ended())
    talk.say(refused(404, message="404 page not found"))
    return talk


def cleared(talk: Talk) -> bool:
    """The cache was emptied."""
    return Clear() in talk.effects


def test_a_404_asks_for_the_crd() -> None:
    """The best proof there is."""
    talk = held()
    assert talk.want(AskDocument).path == CRD_PATH
    assert not cleared(talk)


def test_a_crd_that_is_not_there_is_proof() -> None:
    """A Status of 404 that names it: what is held is deleted, and news are waited for."""
    talk = held()
    talk.say(NO_CRD)
    assert cleared(talk)
    state = talk.in_state(Absent)
    assert state.memory.version == ""
    assert state.until - talk.now >= 300
    assert "there is no CustomResourceDefinition widgets.ex.io" in state.memory.health.reason


def test_news_of_the_crd_end_the_wait() -> None:
    """A wake-up: the collection is asked for, nothing else is believed."""
    talk = held()
    talk.say(NO_CRD)
    assert not [each for each in talk.say(AVAILABLE) if isinstance(each, Swap | Apply)]
    talk.want(StreamState)


def test_news_that_come_while_the_proof_is_sought_are_not_missed() -> None:
    """What was answered may be from before them."""
    talk = held()
    talk.say(CrdSeen(available=True, generation=1))
    talk.in_state(Proving)
    talk.say(NO_CRD)
    assert cleared(talk)
    talk.want(StreamState)


def test_without_the_right_to_watch_crds_it_is_asked_again_with_backoff() -> None:
    """To the cap (S33)."""
    talk = held(crds=CrdSeen(available=False, generation=None))
    for _ in range(12):
        if isinstance(talk.state, Absent):
            wait = talk.state.until - talk.now
            talk.when_due()
        if isinstance(talk.state, BackingOff):
            talk.when_due()
        if not isinstance(talk.state, Proving):
            talk.say(refused(404))
        talk.say(NO_CRD)
    assert 30 <= wait <= 45


@pytest.mark.parametrize(
    "answer",
    [
        refused(404, message="404 page not found"),
        refused(404, name="other.ex.io"),
        refused(403),
        refused(503),
        Document({"kind": "Status"}),
        Document({}),
    ],
)
def test_any_other_answer_about_the_crd_proves_nothing_and_discovery_is_looked_at(
    answer: Answer,
) -> None:
    """A 404 of a proxy names nothing."""
    talk = held()
    talk.say(answer)
    assert not cleared(talk)
    assert talk.want(AskDocument).path == "/apis"


def test_a_lost_connection_proves_nothing() -> None:
    """It is tried again."""
    talk = held()
    talk.say(Lost("reset"))
    assert not cleared(talk)
    talk.in_state(BackingOff)


def test_discovery_without_the_version_is_proof_when_seen_again_after_half_a_minute() -> None:
    """Once may be a server that has just started."""
    talk = held()
    talk.say(refused(403))
    begin = talk.now
    talk.say(groups("v2"))
    while not cleared(talk):
        talk.when_due()
        talk.say(refused(404))
        talk.say(refused(403))
        talk.say(groups("v2"))
    assert talk.now - begin >= 30
    assert talk.in_state(Absent).until - talk.now <= 45


def test_discovery_without_the_resource_is_proof_when_seen_again() -> None:
    """The version is there, the resource is not."""
    talk = held()
    begin = talk.now
    while not cleared(talk):
        if isinstance(talk.state, BackingOff):
            talk.when_due()
            talk.say(refused(404))
        talk.say(refused(403))
        talk.say(groups("v1"))
        assert talk.want(AskDocument).path == "/apis/ex.io/v1"
        talk.say(resources("gadgets"))
    assert talk.now - begin >= 30


def test_discovery_that_shows_it_in_between_begins_the_count_again() -> None:
    """Both looks must miss it."""
    talk = held()
    talk.say(refused(403))
    talk.say(groups("v2"))
    talk.wait(20)
    talk.when_due()
    talk.say(refused(404))
    talk.say(refused(403))
    talk.say(groups("v1"))
    talk.say(resources("widgets"))
    talk.wait(20)
    talk.when_due()
    talk.say(refused(404))
    talk.say(refused(403))
    talk.say(groups("v2"))
    assert not cleared(talk)


@pytest.mark.parametrize(
    "answer",
    [refused(503), refused(404), Document({"kind": "Status"}), Document(), Lost("reset")],
)
def test_discovery_that_fails_proves_nothing(answer: Answer) -> None:
    """Only a 200 of the right kind counts."""
    for path in (1, 2):
        talk = held()
        for _ in range(5):
            if isinstance(talk.state, BackingOff):
                talk.wait(60)
                talk.when_due()
                talk.say(refused(404))
            talk.say(refused(403))
            if path == 2:
                talk.say(groups("v1"))
            talk.say(answer)
            assert not cleared(talk)
            talk.in_state(BackingOff)


def test_a_crd_that_exists_keeps_what_is_held_and_the_reason_says_why() -> None:
    """Not established (S33)."""
    talk = held()
    talk.say(crd(NamesAccepted="False", Established="False"))
    assert not cleared(talk)
    assert "is not established (NamesAccepted=False: names clash" in talk.memory.health.reason
    assert talk.in_state(BackingOff).wakes


def test_a_version_that_is_not_served_is_named_with_those_that_are() -> None:
    """The fix is another version."""
    talk = held()
    talk.say(crd(served=False, Established="True"))
    assert "serves v2; ask for one it serves" in talk.memory.health.reason


def test_a_namespace_given_for_what_has_none_is_said_so() -> None:
    """By the CRD, or by discovery."""
    talk = held(namespace="prod")
    talk.say(crd("Cluster", Established="True"))
    assert "cluster-scoped, but a namespace was given" in talk.memory.health.reason
    talk = held(namespace="prod")
    talk.say(refused(403))
    talk.say(groups("v1"))
    talk.say(resources("widgets", namespaced=False))
    assert "cluster-scoped, but a namespace was given" in talk.memory.health.reason


def test_a_crd_that_will_be_established_is_asked_for_as_soon_as_it_is() -> None:
    """News end the wait."""
    talk = held()
    talk.say(crd())
    talk.in_state(BackingOff)
    talk.say(CrdSeen(available=True, generation=1))
    talk.want(StreamState)


def test_a_resource_that_is_not_installed_yet_is_waited_for() -> None:
    """`for_resource` of it is fine (S33)."""
    talk = Talk(crd=AVAILABLE).begin()
    talk.say(refused(404))
    talk.say(NO_CRD)
    assert not talk.in_state(Absent).memory.position.synced
    talk.say(CrdSeen(available=True, generation=1))
    talk.stream("20")
    assert talk.memory.position.synced


def test_after_it_has_gone_any_version_is_the_truth() -> None:
    """Nothing is held to be older than (S30, S33)."""
    talk = held()
    talk.say(NO_CRD)
    talk.say(AVAILABLE)
    talk.stream("3")
    assert talk.memory.version == "3"


def test_a_built_in_resource_has_no_crd_to_ask_for() -> None:
    """Discovery of its version is looked at."""
    talk = Talk(scope=Scope(gvr=PODS)).begin()
    talk.say(refused(404))
    assert talk.want(AskDocument).path == "/api/v1"


def test_a_404_never_costs_more_than_the_budget() -> None:
    """However often news wake it (S29)."""
    talk = held()
    for _ in range(200):
        talk.say(NO_CRD)
        talk.say(AVAILABLE)
        talk.say(refused(404))
    assert len(talk.asked) <= 60
    memory: Memory = talk.memory
    assert memory.health.reason


def test_while_the_crd_exists_a_429_is_waited_out() -> None:
    """A cold cache (S33)."""
    talk = Talk(scope=Scope(gvr=WIDGETS, watch_list=False), crd=AVAILABLE).begin()
    talk.say(refused(429, message="storage is (re)initializing", after=1))
    assert not cleared(talk)
    talk.when_due()
    talk.want(ListPage)


def test_items_on_the_way_to_a_404_are_not_believed() -> None:
    """Nothing is applied while a proof is sought."""
    talk = held()
    assert talk.say(Batch(version="99")) == ()
