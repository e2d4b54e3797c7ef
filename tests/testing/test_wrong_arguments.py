"""What is of the wrong type is refused in words by the servers for tests and their faults, too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest

import dyninformer.testing
import dyninformer.testing.faults
from dyninformer.testing import ApiServer, InProcessServer
from tests.doors import Door, doors, shown

public: Any = dyninformer.testing  # a type checker would find all that follows
faults: Any = dyninformer.testing.faults
plane: Any = public.ControlPlane
IDLE: Any = Mock()  # in the place of one: what is wrong is said before any program is needed
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
AN_OBJECT = "an object is 5: give a dict with apiVersion, kind and metadata"
A_NAMESPACE = "namespace is 5: give a name, or None for 'default'"
A_TOKEN = "token is 5: give a user's bearer token, or None"
A_PROCESS = "a process is 'apiserver': give 'etcd' or 'kube-apiserver'"
O = "ObjectMethods"  # noqa: E741 - read in a table


class World:
    """One server of each kind that needs no programs."""

    def __init__(self, server: ApiServer) -> None:
        self.server: Any = server
        self.here: Any = InProcessServer()
        self.access: Any = server.access
        self.faults: Any = server.faults


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """One for all: nothing here changes it."""
    with ApiServer() as server:
        yield World(server)


def of_a_process(_: World, name: str) -> object:
    """Do that to a process of which there is none."""
    return getattr(plane, name)(IDLE, "apiserver")


DOORS = [
    Door("ApiServer", lambda w: public.ApiServer(tls="no"), "tls is 'no': give True or False"),
    Door("ApiServer", lambda w: public.ApiServer(port="80"), "port is '80': give its number"),
    Door("ApiServer", lambda w: public.ApiServer(limits={}), "limits is {}: give Limits(...)"),
    Door("ApiServer", lambda w: public.ApiServer(settings={}), "settings is {}: give ReadSettings"),
    Door("ApiServer", lambda w: public.ApiServer(seed="1"), "seed is '1': give a whole number"),
    Door("ApiServer", lambda w: public.ApiServer(controllers=1), "controllers is 1: give True or"),
    Door(
        "ApiServer",
        lambda w: public.ApiServer(controller_delay="1"),
        "controller_delay is '1': give seconds",
    ),
    Door("ApiServer.kubeconfig", lambda w: w.server.kubeconfig(5), "path is 5: give the path of a"),
    Door("ApiServer.kubeconfig", lambda w: w.server.kubeconfig(token=5), A_TOKEN),
    Door("ApiServer.client", lambda w: w.server.client(token=5), A_TOKEN),
    Door("EmbeddedServer.load", lambda w: w.server.load(5), AN_OBJECT),
    Door("EmbeddedServer.unload", lambda w: w.server.unload(5), AN_OBJECT),
    Door(
        "EmbeddedServer.unload",
        lambda w: w.server.unload({**MAP, "metadata": {}}),
        "an object needs metadata.name: ConfigMap has none",
    ),
    Door(
        "EmbeddedServer.compact", lambda w: w.server.compact("5"), "revision is '5': give a whole"
    ),
    Door(
        "EmbeddedServer.restore", lambda w: w.server.restore("x"), "restore() takes what snapshot"
    ),
    Door(
        "InProcessServer", lambda w: public.InProcessServer(5), "clock is 5: give a ManualClock()"
    ),
    Door(
        "InProcessServer.send", lambda w: w.here.send("/"), "a request is '/': give Request(method"
    ),
    Door(
        "InProcessServer.request", lambda w: w.here.request("/"), "a request is '/': give Request("
    ),
    Door("InProcessServer.get_path", lambda w: w.here.get_path(5), "path is 5: give one such as"),
    Door(
        "InProcessServer.get_path", lambda w: w.here.get_path("/", token=5), "token is 5: give that"
    ),
    Door(
        "InProcessServer.advance", lambda w: w.here.advance("5"), "what passes is '5': give seconds"
    ),
    Door(
        "InProcessServer.advance_to", lambda w: w.here.advance_to("5"), "a moment is '5': give sec"
    ),
    Door(f"{O}.install", lambda w: w.server.install(5), "a source is 5: give a file, a folder, an"),
    Door(f"{O}.install", lambda w: w.server.install([[5]]), "a source is 5: give a file, a folder"),
    Door(
        f"{O}.install", lambda w: w.server.install({"kind": "X"}), "an object needs metadata.name"
    ),
    Door(f"{O}.install", lambda w: w.server.install(timeout="5"), "timeout is '5': give seconds"),
    Door(f"{O}.create", lambda w: w.server.create(5), AN_OBJECT),
    Door(f"{O}.create", lambda w: w.server.create({}), "an object needs apiVersion and kind"),
    Door(f"{O}.create", lambda w: w.server.create(MAP, 5), A_NAMESPACE),
    Door(
        f"{O}.create",
        lambda w: w.server.create({**MAP, "metadata": "a"}),
        "metadata is 'a': give a dict with the object's name",
    ),
    Door(f"{O}.get", lambda w: w.server.get(5), "a reference is 5: give text such as 'widgets/a'"),
    Door(f"{O}.get", lambda w: w.server.get("cm/a", 5), A_NAMESPACE),
    Door(f"{O}.list", lambda w: w.server.list(5), "a reference is 5: give text such as 'widgets'"),
    Door(f"{O}.list", lambda w: w.server.list("cm", 5), A_NAMESPACE),
    Door(
        f"{O}.list",
        lambda w: w.server.list("cm", label_selector={"a": "b"}),
        "label_selector is {'a': 'b'}: give text, or None",
    ),
    Door(
        f"{O}.list", lambda w: w.server.list("cm", field_selector=5), "field_selector is 5: give t"
    ),
    Door(f"{O}.replace", lambda w: w.server.replace(5), "a reference is 5: give text such as"),
    Door(f"{O}.patch", lambda w: w.server.patch(5, {}), "a reference is 5: give text such as"),
    Door(f"{O}.patch", lambda w: w.server.patch("cm/a", "x"), "the patch is 'x': give a dict to"),
    Door(f"{O}.patch", lambda w: w.server.patch("cm/a", {}, 5), A_NAMESPACE),
    Door(
        f"{O}.patch", lambda w: w.server.patch("cm/a", {}, kind=5), "kind is 5: give 'merge', 'js"
    ),
    Door(
        f"{O}.patch", lambda w: w.server.patch("cm/a", {}, kind="x"), "no patch of kind 'x': it is"
    ),
    Door(
        f"{O}.patch",
        lambda w: w.server.patch("cm/a", {}, subresource=5),
        "subresource is 5: give its name, such as 'status'",
    ),
    Door(f"{O}.delete", lambda w: w.server.delete(5), "a reference is 5: give text such as"),
    Door("ControlPlane", lambda w: plane(5), "assets is 5: give the path of a folder, or None"),
    Door(
        "ControlPlane.token_for",
        lambda w: plane.token_for(IDLE, 5),
        "user is 5: give the name of a",
    ),
    Door("ControlPlane.kubeconfig", lambda w: plane.kubeconfig(IDLE, token=5), A_TOKEN),
    Door("ControlPlane.client", lambda w: plane.client(IDLE, token=5), A_TOKEN),
    Door(
        "ControlPlane.compact", lambda w: plane.compact(IDLE, "5"), "revision is '5': give a whole"
    ),
    Door(
        "ControlPlane.restore",
        lambda w: plane.restore(IDLE, 5),
        "a snapshot is 5: give what snapsho",
    ),
    Door(
        "ControlPlane.restore",
        lambda w: plane.restore(IDLE, "/nil"),
        "/nil is no snapshot: give what",
    ),
    Door(
        "ControlPlane.stop", lambda w: plane.stop(IDLE, "etcd", "5"), "timeout is '5': give seconds"
    ),
    *(
        Door(f"ControlPlane.{name}", partial(of_a_process, name=name), A_PROCESS)
        for name in ("start", "stop", "kill", "pause", "resume", "pid", "log")
    ),
    Door("Limits", lambda w: public.Limits(idle_seconds="1"), "idle_seconds is '1': give a number"),
    Door(
        "Limits", lambda w: public.Limits(head_bytes=1.5), "head_bytes is 1.5: give a whole number"
    ),
    Door(
        "ReadSettings",
        lambda w: public.ReadSettings(watch_list="no"),
        "watch_list is 'no': give Tr",
    ),
    Door(
        "ReadSettings", lambda w: public.ReadSettings(window_events=True), "window_events is True: "
    ),
    Door("ManualClock", lambda w: public.ManualClock("5"), "now is '5': give seconds since 1970"),
    Door(
        "ManualClock.advance", lambda w: public.ManualClock().advance("5"), "what passes is '5': gi"
    ),
    Door("Request", lambda w: public.Request(5, "/"), "method is 5: give text"),
    Door(
        "Request", lambda w: public.Request("GET", "/", headers=()), "headers is (): give a mapping"
    ),
    Door("Request", lambda w: public.Request("GET", "/", body="x"), "body is 'x': give bytes"),
    Door(
        "Request.param",
        lambda w: public.Request("GET", "/").param(5),
        "the name of a parameter is 5",
    ),
    Door(
        "LoggedRequest.param",
        lambda w: (w.server.list("cm"), w.here.get_path("/version"), w.here.requests[-1].param(5)),
        "the name of a parameter is 5: give text",
    ),
    Door(
        "Reply.on_ready",
        lambda w: w.here.get_path("/version").on_ready(5),
        "ready is 5: give a fun",
    ),
    Door("Access.add_user", lambda w: w.access.add_user(5), "name is 5: give the name of a user"),
    Door(
        "Access.add_user",
        lambda w: w.access.add_user("a", groups="devs"),
        "groups is 'devs': give ",
    ),
    Door(
        "Access.add_user", lambda w: w.access.add_user("a", groups=5), "groups is 5: give several"
    ),
    Door(
        "Access.add_user", lambda w: w.access.add_user("a", token=5), "token is 5: give text, or No"
    ),
    Door(
        "Access.remove_token",
        lambda w: w.access.remove_token(5),
        "a token is 5: give what add_user",
    ),
    Door(
        "Access.allow", lambda w: w.access.allow(5), "user is 5: give a name, '*' for all, or 'gro"
    ),
    Door(
        "Access.allow", lambda w: w.access.allow("a", verbs=5), "verbs is 5: give one text, or sev"
    ),
    Door(
        "Access.allow", lambda w: w.access.allow("a", verb="x"), "a rule has no 'verb': give some "
    ),
    Door("Access.deny", lambda w: w.access.deny("a", reason=5), "reason is 5: give text"),
    Door("Access.remove", lambda w: w.access.remove("a"), "a rule is 'a': give what allow or deny"),
    Door(
        "Faults.add", lambda w: w.faults.add("x"), "a fault is 'x': give one of dyninformer.testing"
    ),
    Door("Faults.add", lambda w: w.faults.add(faults.Reset), "a fault is <class"),
    Door(
        "Faults.add", lambda w: w.faults.add(faults.Reset(), verb=5), "verb is 5: give one, or sev"
    ),
    Door("Faults.add", lambda w: w.faults.add(faults.Reset(), path=5), "path is 5: give a pattern"),
    Door(
        "Faults.add", lambda w: w.faults.add(faults.Reset(), skip="1"), "skip is '1': give a whole"
    ),
    Door(
        "Faults.add", lambda w: w.faults.add(faults.Reset(), times="1"), "times is '1': give a who"
    ),
    Door(
        "Faults.add", lambda w: w.faults.add(faults.Reset(), seconds="1"), "seconds is '1': give a"
    ),
    Door(
        "Faults.add", lambda w: w.faults.add(faults.Reset(), open="no"), "open is 'no': give True"
    ),
    Door(
        "Injection.wait_hit",
        lambda w: w.here.faults.add(faults.Reset()).wait_hit("1"),
        "count is '1': give a whole number",
    ),
    Door(
        "BlackHole", lambda w: faults.BlackHole("1"), "after_lines is '1': give a whole number or"
    ),
    Door("Call", lambda w: faults.Call("then"), "when is 'then': give"),
    Door("Call", lambda w: faults.Call(function=5), "function is 5: give a function"),
    Door("Compact", lambda w: faults.Compact(5), "when is 5: give"),
    Door("ContentType", lambda w: faults.ContentType(body="x"), "body is 'x': give bytes or None"),
    Door("CutChunks", lambda w: faults.CutChunks("7"), "size is '7': give a whole number"),
    Door("Delay", lambda w: faults.Delay("1"), "seconds is '1': give a number"),
    Door("EndEarly", lambda w: faults.EndEarly("1"), "after_lines is '1': give a whole number"),
    Door("EndlessHeaders", lambda w: faults.EndlessHeaders("1"), "seconds is '1': give a number"),
    Door("HttpStatus", lambda w: faults.HttpStatus("500"), "code is '500': give a whole number"),
    Door(
        "HttpStatus", lambda w: faults.HttpStatus(500, text=b"x"), "text is b'x': give text or None"
    ),
    Door("InjectLine", lambda w: faults.InjectLine("x"), "line is 'x': give bytes"),
    Door(
        "LoseEvents", lambda w: faults.LoseEvents("GONE"), "type is 'GONE': give 'ADDED' or 'MODIF"
    ),
    Door("OversizedLine", lambda w: faults.OversizedLine("1"), "size is '1': give a whole number"),
    Door("RawAnswer", lambda w: faults.RawAnswer("x"), "data is 'x': give bytes"),
    Door(
        "Reset", lambda w: faults.Reset(after_bytes=1.5), "after_bytes is 1.5: give a whole number"
    ),
    Door("RestoreBackup", lambda w: faults.RestoreBackup(5), "when is 5: give"),
    Door("SlowDrip", lambda w: faults.SlowDrip(seconds="1"), "seconds is '1': give a number"),
    Door(
        "StreamError", lambda w: faults.StreamError("410"), "code is '410': give a whole number or"
    ),
    Door("Truncate", lambda w: faults.Truncate(ending="x"), "ending is 'x': give Ending."),
]


@pytest.mark.parametrize("door", DOORS, ids=shown)
def test_what_is_wrong_is_said_in_words(world: World, door: Door) -> None:
    """What it is called, what was given, and what to give; never what Python made of it."""
    with pytest.raises((TypeError, ValueError), match=re.escape(door.said)):
        door.call(world)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"users": ["a"]}, "users is ['a']: give a mapping from names to lists of groups"),
        ({"users": {"a": "devs"}}, "users['a'] is 'devs': give several groups, in a list"),
        ({"apiserver_flags": "--v=5"}, "apiserver_flags is '--v=5': give several, in a list"),
        ({"timeout": "5"}, "timeout is '5': give seconds"),
    ],
)
def test_a_control_plane_says_so_before_it_starts_anything(
    given: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its programs need not even be there to be told."""
    monkeypatch.setattr("dyninformer.testing.control_plane.find_assets", lambda _: None)
    with pytest.raises(TypeError, match=re.escape(said)):
        plane(**given)


OF_THE_FAULTS = {"armed", "before", "after", "act"}
OF_THE_SERVER = {"Access.receive", "Access.user_of", "Access.decide", "Rule.matches"}
OF_THE_SERVER |= {"Faults.plan", "Faults.run_due", "InProcessServer.forget"}
"""What the server calls itself."""
NOTHING_TO_GIVE = {"DuplicateLines", "LoseAnswer", "Refuse", "Stale", "TruncateGzip"}
NOTHING_TO_GIVE |= {"WithholdBookmarks"}


def test_every_public_door_is_in_the_table() -> None:
    """Each class and method that tests call with arguments."""
    tried = {door.name for door in DOORS} | OF_THE_SERVER | NOTHING_TO_GIVE
    found = set(doors("dyninformer.testing", "dyninformer.testing.faults"))
    assert {name for name in found - tried if name.partition(".")[2] not in OF_THE_FAULTS} == set()
