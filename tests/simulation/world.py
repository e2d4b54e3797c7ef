"""A seeded world: a cluster that is written to and that goes wrong, and reflectors that follow it.

Nothing here depends on real time or on threads: the same seed is the same run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from random import Random

from dyninformer.resource import GroupVersionResource
from dyninformer.store.decide import Delta, Deltas
from dyninformer.store.store import Store
from dyninformer.testing import ApiError, InProcessServer, ReadSettings
from dyninformer.testing.faults import (
    BlackHole,
    Compact,
    ContentType,
    Delay,
    DuplicateLines,
    EndEarly,
    Ending,
    Fault,
    HttpStatus,
    InjectLine,
    Refuse,
    Reset,
    SlowDrip,
    Stale,
    StreamError,
    Truncate,
    WithholdBookmarks,
)
from dyninformer.testing.messages import Request
from dyninformer.types import Object
from dyninformer.watching.backoff import ALLOWANCE, PERIOD
from dyninformer.watching.states import CrdSeen, Scope, Watching
from tests.conformance.shapes import crd, of_object
from tests.simulation.simulated import SimulatedReflector

WIDGETS = GroupVersionResource("ex.io", "v1", "widgets")
CRD = "customresourcedefinitions/widgets.ex.io"
_FIELDS = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties"
_NAMESPACES = ("default", "other")
_LABELS = ("red", "blue")
_SELECTED = "color=red"


def widgets_crd() -> Object:
    """The CRD as it is at first."""
    schema = of_object(spec=of_object(n={"type": "integer"}))
    return crd("ex.io", "widgets", "Widget", schema)


class Replay:
    """What a handler would hold that believes each change as it is told."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.held: dict[str, Object] = {}
        self.versions: dict[str, int] = {}
        self.went_back: list[str] = []
        """Keys that were told an older version after a newer one."""

    def hear(self, changes: Deltas) -> None:
        """Check that each change begins where the last one of its key ended."""
        for change in changes:
            self._hear(change)

    def _hear(self, change: Delta) -> None:
        decode = self._store.codec.decode
        before = self.held.pop(change.key, None)
        told = None if change.old is None else decode(change.old)
        assert before == told, f"{change.key}: told to go from {told}, held {before}"
        assert (change.old, change.new) != (None, None), f"{change.key}: nothing told"
        if change.new is None:
            return
        obj = decode(change.new)
        assert obj != before, f"{change.key}: told a change that is none"
        self.held[change.key] = obj
        version = int(obj["metadata"]["resourceVersion"])
        if version < self.versions.get(change.key, 0):
            self.went_back.append(change.key)
        self.versions[change.key] = version


class World:
    """One run of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.settings = ReadSettings(
            warm_up=self.random.choice((0.0, 0.0, 2.5)),
            window_events=self.random.choice((2, 10, 100)),
            window_seconds=self.random.choice((1.0, 75.0)),
            watch_list=self.random.random() < 0.7,
            watch_cache=self.random.random() < 0.95,
        )
        self.server = InProcessServer(settings=self.settings, seed=seed)
        self.server.install(widgets_crd())
        self.server.create(_namespace("other"))
        self.sees_crds = self.random.random() < 0.7
        self.may_go_back = False
        self.later: list[tuple[float, Callable[[], None]]] = []
        self._crds_from = self.random.choice((0.0, 0.0, 0.3, 20.0))
        if not self.sees_crds:
            self._forbid_crds()
        self.selector = self.random.choice(("", "", _SELECTED))
        self.store = Store(WIDGETS)
        self.replay = Replay(self.store)
        self.store.on_changes = self.replay.hear
        self.scopes = self.random.choice((("",), ("",), ("default",), _NAMESPACES))
        self.reflectors = [self._reflector(namespace) for namespace in self.scopes]
        self._written = 0

    def _reflector(self, namespace: str) -> SimulatedReflector:
        scope = Scope(
            gvr=WIDGETS,
            namespace=namespace,
            label_selector=self.selector,
            page_size=self.random.choice((1, 2, 5, 500)),
            watch_list=self.random.random() < 0.8,
        )
        seen = self.crd_seen if self.sees_crds else None
        return SimulatedReflector(scope, self.store, self.server, self.random, seen)

    # -- time ----------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the reflectors."""
        self._crds_from += self.server.clock.now()
        for reflector in self.reflectors:
            reflector.begin()
            if self.sees_crds:
                self.later.append((self._crds_from, reflector.news))

    def pass_time(self, seconds: float) -> None:
        """Let all happen that falls due on the way, at its own moment."""
        clock = self.server.clock
        end = clock.now() + seconds
        while True:
            self._run()
            now = clock.now()
            if now >= end:
                return
            moments = [self.server.next_deadline(), *(each for each, _ in self.later)]
            moments += [each.next_moment() for each in self.reflectors]
            due = min((each for each in moments if each is not None), default=end)
            # What is due already and was not done needs a moment more.
            clock.advance(min(max(due, now + 0.001), end) - now)
            self.server.run_due()

    def _run(self) -> None:
        now = self.server.clock.now()
        ready = [act for moment, act in self.later if moment <= now]
        self.later = [each for each in self.later if each[0] > now]
        for act in ready:
            act()
        for reflector in self.random.sample(self.reflectors, len(self.reflectors)):
            reflector.run()

    # -- CRDs ----------------------------------------------------------------------------

    def crd_seen(self) -> CrdSeen:
        """The CRD watch, which is up to date whenever it is asked, once it has opened."""
        if self.server.clock.now() < self._crds_from:
            return CrdSeen(available=False, generation=None)
        found = self._crd()
        if found is None:
            return CrdSeen(available=True, generation=None)
        metadata = found["metadata"]
        return CrdSeen(True, int(metadata["generation"]), metadata["resourceVersion"])

    def _crd(self) -> Object | None:
        try:
            return self.server.get(CRD)
        except (ApiError, LookupError):
            return None

    def _crd_has_changed(self) -> None:
        """The CRD watch tells of it, now or a little later."""
        if not self.sees_crds:
            return
        for delay in (0.0, 0.05, 1.5, self.random.uniform(0, 5)):
            moment = self.server.clock.now() + delay
            self.later += [(moment, reflector.news) for reflector in self.reflectors]

    def _forbid_crds(self) -> None:
        self.server.faults.add(HttpStatus(403), resource="customresourcedefinitions", verb="get")

    # -- what happens --------------------------------------------------------------------

    def write(self) -> None:
        """Create, change or delete a widget."""
        name = f"w{self.random.randrange(8)}"
        namespace = self.random.choice(_NAMESPACES)
        self._written += 1
        spec = {"n": self._written}
        labels = {"color": self.random.choice(_LABELS)}
        with suppress(ApiError, LookupError):
            match self.random.choice(("create", "change", "change", "delete")):
                case "create":
                    self.server.create(_widget(name, labels, spec), namespace)
                case "change":
                    change = {"metadata": {"labels": labels}, "spec": spec}
                    self.server.patch(f"widgets/{name}", change, namespace)
                case _:
                    self.server.delete(f"widgets/{name}", namespace)

    def write_several(self) -> None:
        """Many writes in one moment."""
        for _ in range(self.random.randrange(1, 12)):
            self.write()

    def break_something(self) -> None:
        """A fault, for some requests or some seconds."""
        fault = self._fault()
        if isinstance(fault, Refuse):
            self.server.faults.add(fault, seconds=self.random.uniform(0.1, 20))
            return
        verb = self.random.choice((None, "list", "watch", "watch"))
        skip = self.random.choice((0, 0, 1, 2))
        if self.random.random() < 0.7:
            times = self.random.randrange(1, 5)
            self.server.faults.add(fault, verb=verb, resource="widgets", skip=skip, times=times)
        else:
            seconds = self.random.uniform(1, 60)
            self.server.faults.add(fault, verb=verb, resource="widgets", skip=skip, seconds=seconds)

    def _fault(self) -> Fault:
        chance = self.random
        lines = chance.randrange(4)
        code = chance.choice((401, 403, 404, 410, 429, 500, 503, 504, 400, 405, 422))
        faults: list[Callable[[], Fault]] = [
            Refuse,
            Reset,
            lambda: Reset(after_lines=lines),
            lambda: Reset(after_bytes=chance.randrange(600)),
            BlackHole,
            lambda: BlackHole(after_lines=lines),
            lambda: Delay(chance.uniform(0.1, 70)),
            lambda: Delay(chance.uniform(0.1, 70), after_lines=lines),
            lambda: SlowDrip(size=200, seconds=0.5),
            lambda: HttpStatus(code, retry_after=chance.choice((None, 1, 7))),
            lambda: HttpStatus(code, text="no Status"),
            lambda: ContentType("text/html"),
            lambda: ContentType("text/html", body=b"<html>log in here</html>"),
            lambda: StreamError(410, after_lines=lines),
            lambda: StreamError(chance.choice((None, 500, 504)), after_lines=lines),
            lambda: StreamError(None, reason="Expired", after_lines=lines),
            DuplicateLines,
            WithholdBookmarks,
            lambda: InjectLine(after_lines=lines),
            lambda: InjectLine(b'{"type":"ADDED","object":{"kind":"Widget"}}', after_lines=lines),
            lambda: Truncate(after_lines=lines),
            lambda: Truncate(after_lines=lines, ending=Ending.CLEAN),
            lambda: EndEarly(after_lines=lines),
            lambda: Compact(when=chance.choice(("before", "after"))),
            self._stale,
        ]
        return chance.choice(faults)()

    def _stale(self) -> Fault:
        self.may_go_back = True
        return Stale()

    def compact(self) -> None:
        """Every version that was handed out is too old."""
        self.server.compact()

    def restart(self) -> None:
        """The API server begins anew: caches are cold, streams have ended."""
        self.server.restart()

    def restore(self) -> None:
        """The cluster goes back to a backup, and rests until everybody has seen it."""
        backup = self.server.snapshot()
        self.write_several()
        self.pass_time(self.random.choice((0.5, 5, 100)))
        self._mend()
        self.may_go_back = True
        self.server.restore(backup)
        self._crd_has_changed()
        self.pass_time(600)

    def restore_unseen(self) -> None:
        """The same, and others read it at once, and write past what we hold before we can look.

        Something that is held was changed after the backup, so that it must be found (S30).
        """
        self._mend()
        self.later.clear()
        if self._crd() is None:
            self._install_crd()
        self.pass_time(400)
        backup = self.server.snapshot()
        self.write_several()
        self._written += 1
        labels = {"color": self.random.choice(_LABELS) if not self.selector else "red"}
        for namespace in _NAMESPACES:
            self.server.create(_widget(f"last{self._written}", labels, {"n": 0}), namespace)
        self.pass_time(self.random.choice((10, 100)))
        self.may_go_back = True
        before = self._revision()
        self.server.restore(backup)
        self._others_read()
        while self._revision() <= before:
            self.write()
        self.server.faults.add(Refuse(), seconds=self.random.uniform(0.1, 20))
        self._crd_has_changed()
        self.pass_time(600)
        self.check()

    def _others_read(self) -> None:
        """The API server's cache of the widgets begins now, at the backup."""
        headers = {"authorization": f"Bearer {self.server.token}"}
        path = WIDGETS.path("")
        self.server.send(Request("GET", path, (("resourceVersion", "0"),), headers)).take()

    def _revision(self) -> int:
        """The version of a write that was just made."""
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}
        return int(self.server.create(made, "default")["metadata"]["resourceVersion"])

    def change_schema(self) -> None:
        """A new field with a default: objects have it when they are read, and no event says so."""
        self._written += 1
        field = {"type": "integer", "default": self._written}
        operation = {"op": "add", "path": f"{_FIELDS}/f{self._written}", "value": field}
        with suppress(ApiError, LookupError):
            self.server.patch(CRD, [operation])
            self._crd_has_changed()
        if self.random.random() < 0.5:  # an event from after the change: the stream may resume
            self.later.append((self.server.clock.now() + 0.5, self.write))

    def drop_crd(self) -> None:
        """Delete it, and bring it back, at once or later; the next drop may come before that."""
        with suppress(ApiError, LookupError):
            self.server.delete(CRD)
        self._crd_has_changed()
        moment = self.server.clock.now() + self.random.choice((0.0, 0.1, 2, 40, 400))
        self.later.append((moment, self._install_crd))

    def bury_crd(self) -> None:
        """Delete it and, with nothing else going wrong, see the cache emptied and filled again."""
        self._mend()
        self.later.clear()
        with suppress(ApiError, LookupError):
            self.server.delete(CRD)
        self._crd_has_changed()
        self.pass_time(400)
        assert list(self.store.keys()) == [], "the CRD has gone, and its objects have not"
        self._install_crd()
        self.write_several()
        self.pass_time(20 if self.sees_crds else 120)
        self.check()

    def _install_crd(self) -> None:
        with suppress(ApiError, LookupError, TimeoutError):
            self.server.install(widgets_crd())
        self._crd_has_changed()

    def _mend(self) -> None:
        self.server.faults.clear()
        if not self.sees_crds:
            self._forbid_crds()

    # -- a whole run -----------------------------------------------------------------------

    def live(self, steps: int) -> None:
        """So many things happen, with some time between them."""
        happenings = [
            *[self.write] * 8,
            *[self.write_several] * 3,
            *[self.break_something] * 8,
            self.compact,
            self.restart,
            self.change_schema,
            self.drop_crd,
            *([self.bury_crd] if self.random.random() < 0.3 else []),
            *([self.restore] if self.random.random() < 0.2 else []),
            *([self.restore_unseen] if self.sees_crds and self.random.random() < 0.2 else []),
        ]
        self.begin()
        for _ in range(steps):
            self.random.choice(happenings)()
            self.pass_time(self.random.choice((0.0, 0.01, 0.3, 2.0, 10.0, 70.0, 240.0)))

    def settle(self) -> None:
        """Faults stop, the CRD is there; some writes later all should be known."""
        self._mend()
        if self._crd() is None:
            self._install_crd()
        if not self.sees_crds:
            self.restart()  # a change of the schema within ten minutes of another goes unseen
            self.compact()
        self.pass_time(10)
        for _ in range(5):
            self.write()
            self.pass_time(self.random.uniform(0, 5))
        if self.sees_crds:
            self.change_schema()
        self.pass_time(900)

    def check(self) -> None:
        """The cache is the cluster, and so is what a handler was told."""
        for reflector in self.reflectors:
            state = reflector.session.state
            assert isinstance(state, Watching), f"not watching in the end: {state}"
        expected = {
            f"{obj['metadata']['namespace']}/{obj['metadata']['name']}": obj
            for namespace in (_NAMESPACES if self.scopes == ("",) else self.scopes)
            for obj in self.server.list(
                "widgets.ex.io", namespace, label_selector=self.selector or None
            )
        }
        view = self.store.view()
        cached = {key: json.loads(view.codec.plain(payload)) for key, payload in view.items()}
        assert cached == expected
        assert self.replay.held == expected
        for reflector in self.reflectors:
            moments = reflector.barren
            for first, last in zip(moments, moments[ALLOWANCE:], strict=False):
                assert last - first >= PERIOD, f"more than {ALLOWANCE} requests from {first} on"
        if not self.may_go_back:
            assert self.replay.went_back == []


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _widget(name: str, labels: dict[str, str], spec: Object) -> Object:
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": metadata, "spec": spec}
