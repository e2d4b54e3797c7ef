"""Writes of single objects, and what the cache has seen of them."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pytest

from dyninformer import (
    DROP,
    ConflictError,
    Event,
    ForbiddenError,
    GenericInformer,
    InvalidError,
    ObjectNotFoundError,
    StoppedError,
    UnauthorizedError,
    UnknownResourceError,
    UnreachableError,
    WaitTimeoutError,
    WriteError,
)
from dyninformer.testing.faults import Refuse
from dyninformer.types import Object
from tests.conformance.cluster import Cluster, Collection
from tests.conformance.informer.conftest import Factories, Running
from tests.conformance.informer.recorders import (
    CONFIG_MAPS,
    GLOBES,
    PATIENCE,
    WIDGETS,
    Heard,
    on_embedded,
    on_real,
    rights_of_alice,
)
from tests.conformance.wire import until


def widget(name: str, **spec: Any) -> dict[str, Any]:
    """A widget to apply."""
    return {"kind": "Widget", "metadata": {"name": name}, "spec": spec}


def test_a_patch_is_in_the_cache_when_it_has_been_waited_for(
    widgets: Collection, running: Running
) -> None:
    """A dict is merged, None removes, a list has operations; what is returned is a plain dict."""
    widgets.fill("a", color="red", size=1, note="x")
    found = running()
    written = found.informer.patch(
        "a", widgets.namespace, {"spec": {"color": "blue", "note": None}}, wait=True
    )
    assert type(written) is dict
    assert found.lister.get("a", widgets.namespace) == written
    assert (written["spec"]["color"], "note" in written["spec"]) == ("blue", False)
    operations = [{"op": "replace", "path": "/spec/size", "value": 7}]
    written = found.patch(f"{widgets.namespace}/a", None, operations, wait=PATIENCE)
    assert found.lister.get("a", widgets.namespace)["spec"]["size"] == 7
    managers = {each["manager"] for each in written["metadata"]["managedFields"]}
    assert "dyninformer" in managers


def test_a_patch_that_changes_nothing_is_not_waited_for_in_vain(
    widgets: Collection, running: Running
) -> None:
    """The cache has that version already."""
    widgets.fill("a", color="red")
    found = running()
    for _ in range(2):
        found.patch("a", widgets.namespace, {"spec": {"color": "red"}}, wait=PATIENCE)


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What servers warned of since the last call."""
    found = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    caplog.clear()
    return found


def test_a_warning_of_the_server_is_logged_once(
    widgets: Collection, running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """A misspelt field is pruned with a warning, whether the write succeeds or is refused."""
    widgets.fill("a", "b")
    found = running()
    caplog.clear()
    wrong = widgets.namespace.replace("-", "")  # a field that no other test writes
    found.patch("a", widgets.namespace, {"spec": {wrong: 1, "size": 5}})
    (said,) = warnings_in(caplog)
    assert said.startswith(f"patch widgets.v1.ex.io '{widgets.namespace}/a': ")
    assert said.endswith(f'the API server warns: unknown field "spec.{wrong}"')
    found.patch("b", widgets.namespace, [{"op": "add", "path": f"/spec/{wrong}", "value": 1}])
    assert warnings_in(caplog) == []
    with pytest.raises(InvalidError):
        found.patch("a", widgets.namespace, {"spec": {f"{wrong}x": 1, "color": "pink"}})
    (said,) = warnings_in(caplog)
    assert f'unknown field "spec.{wrong}x"' in said


def test_the_status_is_patched_as_a_subresource(widgets: Collection, running: Running) -> None:
    """And what is not of the status stays."""
    widgets.fill("a", color="red")
    found = running()
    patch = {"status": {"phase": "Ready"}, "spec": {"color": "blue"}}
    found.informer.patch_status("a", widgets.namespace, patch, wait=True)
    held = found.lister.get("a", widgets.namespace)
    assert (held["status"], held["spec"]["color"]) == ({"phase": "Ready"}, "red")


@pytest.mark.parametrize(
    "patch",
    [
        {"phase": "Ready", "replicas": 2},
        {"status": {"phase": "Ready", "replicas": 2}},
        [
            {"op": "test", "path": "/spec/color", "value": "red"},
            {"op": "add", "path": "/status", "value": {"phase": "Ready", "replicas": 2}},
        ],
    ],
    ids=["of the status", "of the object", "JSON patch"],
)
def test_a_patch_of_the_status_may_leave_the_word_status_out(
    widgets: Collection, running: Running, patch: Any
) -> None:
    """A dict is the object's patch if it has a status, and else the status's."""
    widgets.fill("a", color="red")
    written = running().patch_status("a", widgets.namespace, patch, wait=True)
    assert written["status"] == {"phase": "Ready", "replicas": 2}


@pytest.mark.parametrize(
    "patch", [{}, {"metadata": {"labels": {"a": "b"}}}], ids=["empty", "metadata"]
)
def test_a_patch_of_the_status_without_any_field_of_it_is_sent_as_it_is(
    widgets: Collection, running: Running, patch: Any
) -> None:
    """Some built-in resources take metadata there."""
    widgets.fill("a", color="red")
    assert "status" not in running().patch_status("a", widgets.namespace, patch)


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        ({"spec": {"color": "blue"}}, "the patch has spec and no status: give"),
        ({"metadata": {}, "phase": "x"}, "the patch has metadata, phase and no status: give"),
        ([{"op": "add", "path": "/phase", "value": "x"}], "'/phase' is outside of /status"),
        ([{"op": "remove", "path": "/statuses"}], "'/statuses' is outside of /status"),
        ([{"op": "move", "from": "/spec/a", "path": "/spec/b"}], "'/spec/b' is outside"),
    ],
)
@on_embedded
def test_a_patch_that_cannot_change_the_status_is_refused(
    running: Running, patch: Any, text: str
) -> None:
    """The server would ignore it without a word."""
    with pytest.raises(ValueError, match=text):
        running().patch_status("a", "default", patch)


def test_an_apply_creates_changes_and_names_the_managers_of_a_conflict(
    widgets: Collection, running: Running
) -> None:
    """Force takes the fields over. The namespace is the one that is watched."""
    found = running()
    made = found.informer.apply(widget("a", color="red", size=1), field_manager="one", wait=True)
    assert made["metadata"]["namespace"] == widgets.namespace
    assert "a" in [each["metadata"]["name"] for each in found.lister]
    with pytest.raises(ConflictError, match=r"\.spec\.color by \"one\".*force=True") as caught:
        found.apply(widget("a", color="blue"), field_manager="two")
    assert caught.value.fields == ((".spec.color", "one"),)
    assert caught.value.code == 409
    found.apply(widget("a", color="blue"), field_manager="two", force=True, wait=True)
    assert found.lister.get("a", widgets.namespace)["spec"]["color"] == "blue"
    read = found.lister.get("a", widgets.namespace)
    del read["metadata"]["resourceVersion"]
    found.apply(read, field_manager="two", force=True)  # with the managedFields that it has


def test_a_deletion_is_gone_from_the_cache_when_it_has_been_waited_for(
    widgets: Collection, running: Running
) -> None:
    """By its uid, if that is asked for; finalizers that keep it are named."""
    first, _ = widgets.fill("a", "b")
    found = running()
    with pytest.raises(ConflictError):
        found.informer.delete("a", widgets.namespace, uid="of another one")
    uid = first["metadata"]["uid"]
    found.informer.delete("a", widgets.namespace, uid=uid, propagation="Background", wait=True)
    assert found.lister.get("a", widgets.namespace, default=None) is None
    found.patch("b", widgets.namespace, {"metadata": {"finalizers": ["ex.io/keep"]}}, wait=True)
    with pytest.raises(WaitTimeoutError, match=r"finalizers ex\.io/keep keep it"):
        found.delete("b", widgets.namespace, wait=0.2)
    found.patch("b", widgets.namespace, {"metadata": {"finalizers": None}})
    until(lambda: f"{widgets.namespace}/b" not in found.lister, PATIENCE)


def test_a_deletion_of_what_the_cache_has_not_seen_yet_is_waited_for_too(
    widgets: Collection, running: Running
) -> None:
    """What was created just before comes to the cache, and goes, before the wait is over."""
    held_up, go_on = threading.Event(), threading.Event()

    def slow(obj: Object) -> Object:
        if obj["metadata"]["name"] == "late":
            held_up.set()
            assert go_on.wait(PATIENCE)
        return obj

    found, told = running(transform=slow), []
    found.informer.add_event_handler(on_event=lambda event: told.append((event.type, event.name)))
    widgets.fill("late")
    assert held_up.wait(PATIENCE)
    deleting = threading.Thread(
        target=found.informer.delete, args=("late", widgets.namespace), kwargs={"wait": True}
    )
    deleting.start()
    until(lambda: widgets.api.get(widgets.at("late")).status == 404, PATIENCE)
    assert deleting.is_alive()
    go_on.set()
    deleting.join(PATIENCE)
    assert not deleting.is_alive()
    assert f"{widgets.namespace}/late" not in found.lister
    until(lambda: told == [("ADDED", "late"), ("DELETED", "late")], PATIENCE)


def test_what_selectors_leave_out_is_not_waited_for_for_ever(
    widgets: Collection, running: Running
) -> None:
    """What leaves them is; what a transform drops is seen as well."""
    widgets.fill("plain", color="red")
    found = running(label_selector="app=shop")
    began = time.monotonic()
    found.patch("plain", widgets.namespace, {"spec": {"color": "blue"}}, wait=True)
    found.delete("plain", widgets.namespace, wait=True)
    found.apply(widget("other", color="red"), wait=True)
    entered = {"metadata": {"labels": {"app": "shop"}}}
    found.patch("other", widgets.namespace, entered, wait=True)
    assert f"{widgets.namespace}/other" in found.lister
    left = {"metadata": {"labels": {"app": None}}}
    found.patch("other", widgets.namespace, left, wait=True)
    assert f"{widgets.namespace}/other" not in found.lister
    dropping = running(transform=lambda obj: DROP)
    dropping.patch("other", widgets.namespace, {"spec": {"color": "green"}}, wait=True)
    dropping.delete("other", widgets.namespace, wait=True)
    assert time.monotonic() - began < PATIENCE


def test_what_is_not_there_is_said_of_the_object_or_of_the_resource(
    widgets: Collection, running: Running
) -> None:
    """Both are LookupErrors."""
    found = running()
    with pytest.raises(ObjectNotFoundError, match="there is no such object"):
        found.patch("none", widgets.namespace, {})
    with pytest.raises(ObjectNotFoundError):
        found.delete("none", widgets.namespace, wait=True)


def test_a_resource_that_the_server_does_not_have_is_named(factories: Factories) -> None:
    """Nothing is there that could be written to."""
    found = factories().for_resource("gone.v1.ex.io")
    with pytest.raises(UnknownResourceError, match=r"no gone\.v1\.ex\.io"):
        found.patch("a", "default", {})


def test_what_is_invalid_names_each_field(widgets: Collection, running: Running) -> None:
    """And why."""
    widgets.fill("a", color="red")
    found = running()
    with pytest.raises(InvalidError, match=r"spec\.color") as caught:
        found.patch("a", widgets.namespace, {"spec": {"color": "pink", "size": 1000}})
    assert {field for field, _ in caught.value.causes} >= {"spec.color", "spec.size"}
    assert caught.value.code == 422


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"spec": {"colour": "red"}}, "spec.colour"),
        ({"conditions": []}, "conditions"),
        ({"spec": {"parts": [{"name": "a", "weight": 1}]}}, "spec.parts[0].weight"),
    ],
)
def test_an_apply_with_an_unknown_field_is_invalid_and_names_the_field(
    widgets: Collection, running: Running, more: Object, field: str
) -> None:
    """The server calls it a 500; trying again does not help, and the error does not say so."""
    found = running()
    with pytest.raises(InvalidError, match="invalid") as caught:
        found.apply({**widget("a"), **more})
    assert caught.value.code == 500
    assert caught.value.causes == ((field, "field not declared in schema"),)
    assert f"{field}: field not declared in schema" in str(caught.value)
    assert "again" not in str(caught.value)


def test_an_object_that_is_too_large_is_not_to_be_sent_again(
    widgets: Collection, running: Running
) -> None:
    """Neither etcd's limit, which is a 500, nor that of the server passes with time."""
    widgets.fill("a")
    found = running()
    for size in (1_700_000, 3_500_000):
        with pytest.raises(WriteError, match=r"too large.*Make the object smaller") as caught:
            found.patch("a", widgets.namespace, {"spec": {"note": "x" * size}})
        assert "again" not in str(caught.value)


@on_real
def test_values_of_secrets_are_not_in_errors(running: Running) -> None:
    """Whatever the server repeats of them; the embedded one does not look into them."""
    secrets = running("v1/secrets")
    body = {"kind": "Secret", "metadata": {"name": "s"}, "type": "kubernetes.io/tls"}
    with pytest.raises(InvalidError) as caught:
        secrets.apply({**body, "data": {"a b": "c2VjcmV0", "tls.crt": "hush", "tls.key": "hush"}})
    assert "c2VjcmV0" not in str(caught.value)
    assert "hush" not in str(caught.value)
    for data in ({"stringData": {"a": 4711, "b": {"c": "4711"}}}, {"data": {"a": 4711}}):
        with pytest.raises(InvalidError, match="expected string") as caught:
            secrets.apply({**body, **data})
        assert "4711" not in f"{caught.value} {caught.value.causes}"


def test_who_may_not_write_is_told_which_right_is_missing(
    cluster: Cluster, widgets: Collection, running: Running, api: Any
) -> None:
    """Of the resource, or of its status."""
    widgets.fill("a")
    for each in rights_of_alice(widgets.namespace):
        kind = each["kind"].lower() + "s"
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{widgets.namespace}/{kind}"
        assert api.post(path, each).status == 201
    found = running(client=cluster.server.client(token=cluster.alice._token))
    with pytest.raises(
        ForbiddenError, match=r'User "alice" cannot patch.*Give it patch on widgets'
    ):
        found.patch("a", widgets.namespace, {"spec": {"color": "red"}})
    with pytest.raises(ForbiddenError, match="Give it patch on widgets/status"):
        found.patch_status("a", widgets.namespace, {"status": {"phase": "x"}})
    with pytest.raises(PermissionError):
        found.delete("a", widgets.namespace)


def test_a_write_with_credentials_that_are_refused_says_so(
    cluster: Cluster, widgets: Collection, factories: Factories
) -> None:
    """It is the error of reads, and a WriteError with the server's code."""
    found = factories(cluster.server.client(token="wrong")).for_resource(WIDGETS)
    with pytest.raises(UnauthorizedError, match=r"cannot patch widgets.*401.*Renew") as caught:
        found.patch("a", widgets.namespace, {"spec": {"color": "red"}})
    assert isinstance(caught.value, WriteError)
    assert (caught.value.code, caught.value.status["reason"]) == (401, "Unauthorized")


def test_an_outdated_version_is_a_conflict(widgets: Collection, running: Running) -> None:
    """With what to do about it."""
    widgets.fill("a")
    found = running()
    with pytest.raises(ConflictError, match="Read it again"):
        found.patch("a", widgets.namespace, {"metadata": {"resourceVersion": "1"}})


def test_cluster_scoped_and_namespaced_names_are_told_apart(
    widgets: Collection, factories: Factories
) -> None:
    """As the lister does, before anything is asked."""
    factory = factories(namespace=None)
    found = factory.for_resource(WIDGETS)
    globes = factory.for_resource(GLOBES)
    factory.sync(PATIENCE)
    widgets.fill("a")
    with pytest.raises(ValueError, match="namespaced"):
        found.patch("a", None, {})
    with pytest.raises(ValueError, match="cluster-scoped"):
        globes.patch("a", "default", {})
    made = globes.apply({"kind": "Globe", "metadata": {"name": widgets.namespace}}, wait=True)
    assert globes.lister.get(widgets.namespace) == made
    globes.delete(widgets.namespace, wait=True)
    assert widgets.namespace not in globes.lister


def test_waiting_in_a_handler_of_the_same_informer_stands_in_nobody_s_way(
    widgets: Collection, running: Running
) -> None:
    """The cache goes on while the handler waits (S11)."""
    found = running()
    done: list[str] = []

    def on_event(event: Event) -> None:
        if event.type == "ADDED":
            found.patch(event.name, event.namespace, {"spec": {"color": "blue"}}, wait=True)
            done.append(found.lister.get(event.key)["spec"]["color"])
            found.delete(event.name, event.namespace, wait=True)
            done.append("gone" if event.key not in found.lister else "there")

    heard = Heard(on_event)
    found.informer.add_event_handler(heard)
    widgets.fill("a", color="red")
    heard.wait("DELETED", "a")
    assert done == ["blue", "gone"]


def test_a_namespace_that_is_not_watched_is_written_to_and_not_waited_for(
    widgets: Collection, running: Running, other: Collection
) -> None:
    """It says so before it writes."""
    other.fill("a", color="red")
    found = running()
    with pytest.raises(ValueError, match="does not watch namespace"):
        found.patch("a", other.namespace, {"spec": {"color": "blue"}}, wait=True)
    assert other.api.get(other.at("a")).json["spec"]["color"] == "red"
    found.patch("a", other.namespace, {"spec": {"color": "blue"}})
    assert other.api.get(other.at("a")).json["spec"]["color"] == "blue"


def test_a_stopped_informer_writes_and_does_not_wait(widgets: Collection, running: Running) -> None:
    """Its cache will see nothing more."""
    widgets.fill("a", color="red")
    found = running()
    found.informer.stop(5)
    with pytest.raises(StoppedError):
        found.patch("a", widgets.namespace, {"spec": {"color": "blue"}}, wait=True)
    assert (
        found.patch("a", widgets.namespace, {"spec": {"color": "blue"}})["spec"]["color"] == "blue"
    )


@on_embedded
def test_a_cache_that_lags_behind_does_not_hold_a_write_for_ever(
    widgets: Collection, running: Running
) -> None:
    """The write stands, and the error says so."""
    widgets.fill("a", color="red")
    found: GenericInformer = running()
    found.informer._reflectors._reflectors[0].stop()
    with pytest.raises(WaitTimeoutError, match="is written, but"):
        found.patch("a", widgets.namespace, {"spec": {"color": "blue"}}, wait=0.1)
    assert widgets.api.get(widgets.at("a")).json["spec"]["color"] == "blue"


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda i: i.patch("a", "ns", "x"), TypeError, "give a dict"),
        (lambda i: i.patch("a", "ns", {}, wait="yes"), TypeError, "wait is 'yes'"),
        (lambda i: i.patch("a", "ns", {}, wait=-1), ValueError, "wait is -1"),
        (lambda i: i.patch("", "ns", {}), ValueError, "name is empty"),
        (lambda i: i.apply({}), ValueError, "no metadata.name"),
        (lambda i: i.apply("x"), ValueError, "no metadata.name"),
        (lambda i: i.apply({"metadata": {"name": "a"}}), ValueError, "no kind"),
        (
            lambda i: i.apply({"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}}),
            ValueError,
            "the informer's resource is",
        ),
        (lambda i: i.apply(widget("a"), field_manager=""), ValueError, "field_manager"),
        (lambda i: i.delete("a", "ns", propagation="All"), ValueError, "Background"),
    ],
)
@on_embedded
def test_what_cannot_be_meant_is_refused_before_anything_is_asked(
    running: Running, act: Any, error: type[Exception], text: str
) -> None:
    """In words."""
    found = running()
    with pytest.raises(error, match=text):
        act(found.informer)


@on_embedded
def test_a_server_that_is_not_there_is_unreachable(
    widgets: Collection, running: Running, faults: Any
) -> None:
    """As for reads."""
    found = running(CONFIG_MAPS)
    with faults.add(Refuse()), pytest.raises(UnreachableError, match="cannot reach"):
        found.patch("a", widgets.namespace, {})
