"""Waiting until an object meets a condition, or a version is seen."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from kubernetes import client

from dyninformer import (
    ResourceOptions,
    SharedIndexInformer,
    WaitTimeoutError,
    open_informer,
    strip,
)
from dyninformer.errors import JSONPathWarning
from dyninformer.indexer import Store
from dyninformer.testing import ApiServer
from dyninformer.testing.faults import HttpStatus
from dyninformer.threads import waited
from dyninformer.types import Object
from dyninformer.waiting import met_when, until_met
from tests.config_maps import MAPS, PATIENCE, write
from tests.conformance.wire import until


def test_an_object_that_is_there_is_waited_for_no_longer(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """It is returned as it is; a timeout of 0 is enough."""
    made = write(server, "a", x="1")
    synced.wait_for_version(made["metadata"]["resourceVersion"], PATIENCE)
    assert synced.wait_for("create", name="a", namespace="default", timeout=0) == made


def test_a_wait_ends_with_the_change_that_meets_its_condition(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """The object need not be there when the wait begins."""
    found: list[dict[str, Any]] = []

    def wait() -> None:
        found.append(
            synced.wait_for("jsonpath={.data.x}=2", name="a", namespace="default", timeout=PATIENCE)
        )

    thread = threading.Thread(target=wait)
    thread.start()
    write(server, "b", x="2")
    write(server, "a", x="1")
    changed = server.patch("configmaps/a", {"data": {"x": "2"}}, "default")
    thread.join(PATIENCE)
    assert found == [changed]


def test_a_version_that_was_passed_has_been_seen(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """What came later says so."""
    first, second = write(server, "a", x="1"), write(server, "b", x="1")
    synced.wait_for_version(second["metadata"]["resourceVersion"], PATIENCE)
    synced.wait_for_version(first["metadata"]["resourceVersion"], timeout=0)


class DeletedAtFirstSight(Store):
    """A cache whose object is deleted from the server as soon as it was looked at."""

    def __init__(self, server: ApiServer, informer: SharedIndexInformer) -> None:
        self._server = server
        self._informer = informer
        self._looked = False

    def get_by_key(self, key: str) -> dict[str, Any] | None:
        """What is held before the deletion, or after it."""
        found = self._informer.store.get_by_key(key)
        if not self._looked:
            self._looked = True
            self._server.delete("configmaps/a", "default")
        return found


class Proxy:
    """An informer with another cache."""

    def __init__(self, informer: SharedIndexInformer, store: Store) -> None:
        self._informer = informer
        self.store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._informer, name)


def test_a_wait_for_a_deletion_returns_the_last_state(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """As the wait saw it."""
    made = write(server, "a", x="1")
    synced.wait_for_version(made["metadata"]["resourceVersion"], PATIENCE)
    proxy: Any = Proxy(synced, DeletedAtFirstSight(server, synced))
    watch = synced._dispatcher.watch("default/a")
    gone = waited(until_met(proxy, watch, "delete", PATIENCE))
    assert gone == made


class ReplacedAtFirstSight(DeletedAtFirstSight):
    """A cache whose object was deleted and made anew between two looks at it."""

    def get_by_key(self, key: str) -> dict[str, Any] | None:
        """What is held before, or after."""
        first = not self._looked
        found = super().get_by_key(key)
        if first:
            again = write(self._server, "a", x="2")
            self._informer.wait_for_version(again["metadata"]["resourceVersion"], PATIENCE)
        return found


def test_another_object_of_the_same_name_is_a_deletion(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """The wait has never seen the name without an object; it returns the old one's last state."""
    made = write(server, "a", x="1")
    synced.wait_for_version(made["metadata"]["resourceVersion"], PATIENCE)
    proxy: Any = Proxy(synced, ReplacedAtFirstSight(server, synced))
    watch = synced._dispatcher.watch("default/a")
    gone = waited(until_met(proxy, watch, "delete", PATIENCE))
    assert gone == made


def test_a_deletion_of_what_never_was_is_over(synced: SharedIndexInformer) -> None:
    """There is no last state to return."""
    assert synced.wait_for("delete", name="never", namespace="default", timeout=0) == {}


def test_a_wait_that_is_not_met_holds_the_last_state(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """And says what there is instead; without an object, that there is none."""
    made = write(server, "a", x="1")
    synced.wait_for_version(made["metadata"]["resourceVersion"], PATIENCE)
    with pytest.raises(WaitTimeoutError, match='is "1"') as caught:
        synced.wait_for("jsonpath={.data.x}=2", name="a", namespace="default", timeout=0.05)
    assert caught.value.last == made
    with pytest.raises(WaitTimeoutError, match="no such object") as caught:
        synced.wait_for("create", name="never", namespace="default", timeout=0.05)
    assert caught.value.last is None


def test_a_wait_for_a_path_that_no_object_can_have_warns(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """It would not end."""
    synced.wait_for_version(write(server, "a", x="1"), PATIENCE)
    condition = "jsonpath={.metadata.nmae}=a"
    with (
        pytest.warns(JSONPathWarning, match="did you mean .metadata.name?"),
        pytest.raises(WaitTimeoutError),
    ):
        synced.wait_for(condition, name="a", namespace="default", timeout=0)


def test_changes_of_other_objects_do_not_prolong_a_wait(
    server: ApiServer, synced: SharedIndexInformer
) -> None:
    """It ends while they go on."""
    write(server, "busy")
    over = threading.Event()

    def be_busy() -> None:
        number = 0
        while not over.wait(0.005):
            number += 1
            server.patch("configmaps/busy", {"data": {"n": str(number)}}, "default")

    thread = threading.Thread(target=be_busy)
    thread.start()
    with pytest.raises(WaitTimeoutError):
        synced.wait_for("create", name="never", namespace="default", timeout=0.2)
    assert thread.is_alive()
    over.set()
    thread.join()


def test_a_wait_before_the_sync_says_why_there_is_none(
    server: ApiServer, informer: SharedIndexInformer
) -> None:
    """The reason of the status is in the error."""
    with server.faults.add(HttpStatus(503, "closed for lunch")):
        informer.start()
        until(lambda: informer.status().attempts)
        with pytest.raises(WaitTimeoutError, match="closed for lunch"):
            informer.wait_for("create", name="a", namespace="default", timeout=0.05)


# -- versions ---


def test_a_version_of_ones_own_is_seen(server: ApiServer, synced: SharedIndexInformer) -> None:
    """After it, reads have what was written."""
    made = write(server, "a", x="1")
    synced.wait_for_version(made["metadata"]["resourceVersion"], PATIENCE)
    assert synced.lister.get("a", "default") == made


def test_a_version_that_does_not_come_is_an_error(synced: SharedIndexInformer) -> None:
    """It says where the cache is."""
    with pytest.raises(WaitTimeoutError, match="it is at"):
        synced.wait_for_version("999999999999", 0.05)


@pytest.mark.parametrize("form", ["object", "namespace", "instance", "model"])
def test_the_namespace_of_a_write_decides(server: ApiServer, form: str) -> None:
    """Of several: the streams of the others may not have come so far for a long time."""
    options = ResourceOptions(namespaces=["default", "kube-system"])
    informer = SharedIndexInformer(server.client(), MAPS, options)
    informer.start()
    assert informer.wait_synced(PATIENCE)
    made = write(server, "a", x="1")
    version = made["metadata"]["resourceVersion"]
    if form == "namespace":
        informer.wait_for_version(version, PATIENCE, namespace="default")
    elif form == "object":
        informer.wait_for_version(made, PATIENCE)
    elif form == "instance":
        maps = server.client().resources.get(api_version="v1", kind="ConfigMap")
        informer.wait_for_version(maps.get("a", "default"), PATIENCE)
    else:
        core = client.CoreV1Api(server.client().client)
        informer.wait_for_version(core.read_namespaced_config_map("a", "default"), PATIENCE)
    assert informer.lister.get("a", "default") == made
    with pytest.raises(WaitTimeoutError, match=r"in namespace kube-system .* it is at"):
        informer.wait_for_version(version, 0, namespace="kube-system")
    with pytest.raises(WaitTimeoutError, match="slowest of its namespaces: pass namespace="):
        informer.wait_for_version(version, 0)
    with pytest.raises(ValueError, match="does not watch namespace 'prod', but default, kube"):
        informer.wait_for_version(version, 0, namespace="prod")
    assert informer.stop(5)


@pytest.mark.parametrize("namespace", [None, "default"])
def test_an_opaque_version_is_seen_when_it_is_the_one(
    synced: SharedIndexInformer, namespace: str | None
) -> None:
    """What is no number is older or newer than nothing (S30)."""
    with pytest.raises(WaitTimeoutError, match="not seen version abc"):
        synced.wait_for_version("abc", 0, namespace=namespace)


def test_what_has_no_version_is_nothing_to_wait_for(synced: SharedIndexInformer) -> None:
    """As what a delete returns at times, a Status."""
    with pytest.raises(ValueError, match=r"a dict without metadata\.resourceVersion"):
        synced.wait_for_version({"kind": "Status", "metadata": {}})


def conditioned(status: str, *, observed: int | None = None, generation: int = 1) -> Object:
    """An object with a condition Ready."""
    condition: Object = {"type": "Ready", "status": status, "reason": "Because", "message": "so"}
    if observed is not None:
        condition["observedGeneration"] = observed
    return {"metadata": {"generation": generation}, "status": {"conditions": [condition]}}


@pytest.mark.parametrize(
    ("condition", "obj", "met"),
    [
        ("create", {}, True),
        ("create", None, False),
        ("delete", None, True),
        ("delete", {}, False),
        ("condition=Ready", conditioned("True"), True),
        ("condition=ready", conditioned("TRUE"), True),
        ("condition=Ready", conditioned("False"), False),
        ("condition=Ready=False", conditioned("False"), True),
        ("condition=Ready=unknown", conditioned("Unknown"), True),
        ("condition=Other", conditioned("True"), False),
        ("condition=Ready", None, False),
        ("condition=Ready", {"status": {}}, False),
        ("condition=Ready", {"status": "odd"}, False),
        ("condition=Ready", {"status": {"conditions": ["odd"]}}, False),
        ("jsonpath={.status.phase}", {"status": {"phase": ""}}, True),
        ("jsonpath={.status.phase}", {"status": {}}, False),
        ("jsonpath={.status.phase}=Running", {"status": {"phase": "Running"}}, True),
        ("jsonpath={.status.phase}=Running", {"status": {"phase": "Pending"}}, False),
        ("jsonpath={.status.phase}=Running", None, False),
        ("jsonpath={.spec.replicas}=3", {"spec": {"replicas": 3}}, True),
        ("jsonpath={.items[5].x}=3", {"items": []}, False),
        (lambda obj: obj["spec"] == 1, {"spec": 1}, True),
        (lambda obj: obj["spec"] == 1, {"spec": 2}, False),
        (lambda obj: True, None, False),
    ],
)
def test_a_condition_is_met_or_not(condition: Any, obj: Object | None, met: bool) -> None:
    """By an object as it is, or by there being none."""
    assert met_when(condition)(obj) is met


def test_a_condition_of_an_older_generation_is_not_met() -> None:
    """The controller has not seen what was asked for last; the object's own mark counts too."""
    ready = met_when("condition=Ready")
    assert not ready(conditioned("True", observed=1, generation=2))
    assert ready(conditioned("True", observed=2, generation=2))
    whole = conditioned("True", generation=2)
    whole["status"]["observedGeneration"] = 1
    assert not ready(whole)


@pytest.mark.parametrize(
    "condition", ["", "ready", "delete=x", "create=", "condition=", "jsonpath=", "Ready=True"]
)
def test_words_that_mean_nothing_are_refused_with_those_that_do(condition: str) -> None:
    """The error lists the forms."""
    with pytest.raises(ValueError, match="condition=Ready"):
        met_when(condition)


def test_a_path_that_cannot_be_parsed_is_refused_at_once() -> None:
    """Not only when the first object comes."""
    with pytest.raises(ValueError, match="status"):
        met_when("jsonpath={.status[}=x")


def test_no_value_of_a_secret_is_said(server: ApiServer) -> None:
    """Nor where a transform took away what says that it is one."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a"},
        "data": {"x": "aGk="},
    }
    server.create(secret, namespace="default")
    for transform in None, strip("kind"):
        with (
            open_informer("v1/secrets", client=server.client(), transform=transform) as secrets,
            pytest.raises(WaitTimeoutError, match="not shown") as caught,
        ):
            secrets.informer.wait_for(
                "jsonpath={.data.x}=eA==", name="a", namespace="default", timeout=0
            )
        assert "aGk=" not in str(caught.value)


def test_what_there_is_instead_is_said() -> None:
    """The reason and message of a condition, the value of a path, or that there is no object."""
    ready, phase = met_when("condition=Ready"), met_when("jsonpath={.status.phase}=Running")
    assert ready.found(conditioned("False")) == "condition Ready is False: Because: so"
    assert "older generation" in ready.found(conditioned("True", observed=1, generation=2))
    assert phase.found({"status": {"phase": "Pending"}}) == '{.status.phase} is "Pending"'
    for each in (ready, phase, met_when("create"), met_when(bool)):
        assert each.found(None) == "there is no such object"
