"""A seeded world: a cluster that is written to and that goes wrong, and a factory that follows it.

Nothing here depends on real time or on real threads: the same seed is the same run.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Final, TypeAlias

from dyninformer import (
    AuditError,
    DynamicSharedInformerFactory,
    DynInformerError,
    GroupVersionResource,
    SharedIndexInformer,
    StaleCacheError,
)
from dyninformer.store.indexes import as_function
from dyninformer.testing import ApiError, InProcessServer, ReadSettings
from dyninformer.testing.clock import ManualClock
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
from dyninformer.watching import protocol
from dyninformer.watching.backoff import ALLOWANCE, PERIOD
from dyninformer.watching.freshness import ON_THE_WAY
from dyninformer.watching.reflector import Reflector
from dyninformer.watching.status import InformerState, InformerStatus
from tests.conformance.shapes import crd, of_object
from tests.simulation import following, interrupting
from tests.simulation.following import Following
from tests.simulation.interrupting import interrupted
from tests.simulation.listening import Listening, Replay
from tests.simulation.network import Asked, Network, SimulatedSource
from tests.simulation.scheduler import Scheduler
from tests.simulation.watch_faults import (
    MOST_AHEAD,
    BookmarkAhead,
    Listener,
    LossyFault,
    LostEvents,
    OldEvents,
    Replicas,
    Starved,
)
from tests.simulation.working import Working

WIDGETS: Final = GroupVersionResource("ex.io", "v1", "widgets")
CRD: Final = "customresourcedefinitions/widgets.ex.io"
_FIELDS = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties"
_NAMESPACES = ("default", "other")
_LABELS = ("red", "blue")
_SELECTED = "color=red"
_ANCHOR = "anchor"
_MOST = (0, 2, 0, 10, 1)  # so many events wait for a handler, by its number; 0 is no bound
"""An object that is there from the beginning, and is never written to."""
_OWN_WRITES = 4
_SEE_OWN_WRITES, _LOSE_THE_LAST = 0.1, 0.3  # so often each is done in the end
_PAUSES = (0.0, 0.01, 0.3, 2.0, 10.0, 70.0, 240.0)
_TRACED = (
    "delivery/dispatch.py",
    "delivery/queue.py",
    "dyninformer/threads.py",
    "store/store.py",
    "store/relist.py",
)

Act: TypeAlias = Callable[[Random], None]


def widgets_crd() -> Object:
    """The CRD as it is at first."""
    schema = of_object(spec=of_object(n={"type": "integer"}))
    return crd("ex.io", "widgets", "Widget", schema)


class World:
    """One run of one seed. Made and used inside of `simulated`, in one thread."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.clock = ManualClock()
        chance = Random(f"{seed} settings")
        self.scheduler = Scheduler(
            seed,
            self.clock,
            switching=chance.choice((0.0, 0.02, 0.2, 0.6)),
            traced=_TRACED if chance.random() < 0.1 else (),
        )
        self.scheduler.victim = chance.choice(("", "", "", "handler", "reflector widgets"))
        self.chance = chance
        self.said: list[str] = []
        """What happened, for those who read a failure."""

    def begin(self) -> None:
        """Make the cluster and the factory."""
        chance, seed = self.chance, self.seed
        self.settings = ReadSettings(
            warm_up=chance.choice((0.0, 0.0, 2.5)),
            window_events=chance.choice((2, 10, 100)),
            window_seconds=chance.choice((1.0, 75.0)),
            watch_list=chance.random() < 0.7,
            watch_cache=chance.random() < 0.95,
        )
        self.server = InProcessServer(self.clock, settings=self.settings, seed=seed)
        self.network = Network(self.server, self.scheduler, seed)
        self.network.version_of = self._version_of
        self.scheduler.next_deadline = self.server.next_deadline
        self.scheduler.run_due = self._run_due
        self.seen: deque[bytes] = deque(maxlen=20)
        self.server.install(widgets_crd())
        self.server.create(_namespace("other"))
        for namespace in _NAMESPACES:
            self.server.create(_widget(_ANCHOR, {"color": "red"}, {"n": 0}), namespace)
        self.sees_crds = chance.random() < 0.7
        self._mend()
        if self.sees_crds and chance.random() < 0.3:
            late = Delay(chance.choice((0.3, 20.0)))
            self.server.faults.add(late, resource="customresourcedefinitions", times=1)
        self.may_go_back = self.lossy = self.losing = False
        self.anchored = True
        """The anchors have been there all the time."""
        self.selector = chance.choice(("", "", _SELECTED))
        self.scopes = chance.choice((("",), ("",), ("default",), _NAMESPACES))
        self.options = {
            "namespaces": self.scopes if len(self.scopes) > 1 else self.scopes[0],
            "label_selector": self.selector,
            "page_size": chance.choice((1, 2, 5, 500)),
            "watch_list": chance.random() < 0.8,
            "resync": chance.choice((0, 0, 40)),
        }
        self._written = self._named = self._newest = 0
        self._later = 0  # counts up when what was put off is dropped
        self.handlers: list[Listening] = []
        self.streams: list[Replay] = []
        self.queues: list[Working] = []
        self.following: Following | None = None
        self.follows = not self.scheduler.traced and Random(f"{seed} follow").random() < 0.2
        """Whether there are CRDs that come and go, and somebody who follows them."""
        self.objections: list[AssertionError] = []
        """Those of handlers, of work and of a follower, also after their end."""
        self.errors = _Errors()
        logging.getLogger("dyninformer").addHandler(self.errors)
        self._make_factory(chance)
        for _ in range(chance.randrange(1, 3)):
            self.add_handler(chance)
        self.factory.start()
        if self.follows:
            self.come_or_go(Random(f"{seed} first"))
            self.follow(Random(f"{seed} follower"))

    def end(self) -> None:
        """Leave nothing behind."""
        self.scheduler.give_up()
        logging.getLogger("dyninformer").removeHandler(self.errors)

    def _make_factory(self, chance: Random) -> None:
        self._source = SimulatedSource(self.network)
        self.factory = DynamicSharedInformerFactory(self._source)
        indexers = {"color": ".metadata.labels.color"}
        if chance.random() < 0.5:
            indexers["n"] = ".spec.n"
        found = self.factory.for_resource(WIDGETS, indexers=indexers, **self.options)  # type: ignore[arg-type]
        self.informer: SharedIndexInformer = found.informer
        self.lister = found.lister

    def _version_of(self, channel: object) -> str:
        """The newest version that the reflector of a channel has."""
        for each in self._reflectors():
            if each._transport is channel:
                return protocol.newest(each._session.state)
        return ""

    def _reflectors(self) -> Iterable[Reflector]:
        yield from self.informer._reflectors._reflectors
        if self.following is not None:
            yield from self.following.reflectors()
        yield self.informer.runtime.crds._reflector

    # -- time ----------------------------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        """Let all happen that falls due on the way, at its own moment."""
        self.scheduler.sleep(seconds)
        self.look()

    def after(self, seconds: float, act: Act, chance: Random) -> None:
        """Have something happen later, unless all such is dropped before."""
        later, mine = self._later, Random(chance.random())

        def run() -> None:
            self.scheduler.sleep(seconds)
            if later == self._later:
                act(mine)

        self.scheduler.spawn(f"later {self.number()}", run)

    def _run_due(self) -> None:
        self.server.run_due()
        self.network.look_again()

    def number(self) -> int:
        """One for a name."""
        self._named += 1
        return self._named

    def say(self, what: str) -> None:
        """For a reader of a failure."""
        self.said.append(f"{self.clock.now() - ManualClock().now():9.3f} s  {what}")

    # -- what happens to the cluster -----------------------------------------------------

    def write(self, chance: Random) -> None:
        """Create, change or delete a widget."""
        name = f"w{chance.randrange(8)}"
        namespace = chance.choice(_NAMESPACES)
        self._written += 1
        spec = {"n": self._written}
        labels = {"color": chance.choice(_LABELS)}
        kind = chance.choice(("create", "change", "change", "delete"))
        with suppress(ApiError, LookupError):
            match kind:
                case "create":
                    made = self.server.create(_widget(name, labels, spec), namespace)
                    self._newest = int(made["metadata"]["resourceVersion"])
                case "change":
                    change = {"metadata": {"labels": labels}, "spec": spec}
                    made = self.server.patch(f"widgets/{name}", change, namespace)
                    self._newest = int(made["metadata"]["resourceVersion"])
                case _:
                    self.server.delete(f"widgets/{name}", namespace)
            self.say(f"{kind} {namespace}/{name} {labels} {spec}")

    def write_several(self, chance: Random) -> None:
        """Many writes in one moment."""
        for _ in range(chance.randrange(1, 12)):
            self.write(chance)

    def write_slowly(self, chance: Random) -> None:
        """Many writes, and threads that go on in between."""
        for _ in range(chance.randrange(1, 12)):
            self.write(chance)
            self.scheduler.point()

    def break_something(self, chance: Random) -> None:
        """A fault, for some requests or some seconds."""
        fault = self._fault(chance)
        verb = chance.choice((None, "list", "watch", "watch"))
        skip = chance.choice((0, 0, 1, 2))
        times = chance.randrange(1, 5) if chance.random() < 0.7 else None
        seconds = chance.uniform(1, 60) if times is None else None
        if isinstance(fault, Refuse):
            seconds = chance.uniform(0.1, 20)
            self.server.faults.add(fault, seconds=seconds)
            self.say(f"{fault} for {seconds:.1f} s")
            return
        resource = "widgets"
        if isinstance(fault, LossyFault | OldEvents):
            verb = "watch"
        elif self.follows and chance.random() < 0.3:
            resource = chance.choice(list(following.KINDS))
        self.lossy = self.lossy or isinstance(fault, LossyFault)
        self.may_go_back = self.may_go_back or isinstance(fault, Stale | Replicas)
        self.server.faults.add(
            fault, verb=verb, resource=resource, skip=skip, times=times, seconds=seconds
        )
        how = f"{seconds:.1f} s" if times is None else f"{times} requests"
        self.say(f"{fault} of {verb} {resource}, after {skip}, for {how}")

    def _fault(self, chance: Random) -> Fault:
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
            Stale,
            lambda: Replicas(chance.choice((0.3, 0.7)), chance.random()),
            lambda: Replicas(chance.choice((0.3, 0.7)), chance.random()),
            lambda: BookmarkAhead(
                chance.choice((0, 1, MOST_AHEAD)), chance.choice((0.0, 1.0, 20.0))
            ),
            LostEvents,
            lambda: LostEvents((b'{"type":"ADDED"', b'{"type":"MODIFIED"')),
            lambda: OldEvents(self.seen),
            lambda: OldEvents(self.seen),
            lambda: Starved(lines, chance.choice((5.0, 40.0, 300.0))),
        ]
        return chance.choice(faults)()

    def compact(self, chance: Random) -> None:
        """Every version that was handed out is too old."""
        del chance
        self.say("compaction")
        self.server.compact()

    def restart(self, chance: Random) -> None:
        """The API server begins anew: caches are cold, streams have ended."""
        del chance
        self.say("restart of the API server")
        self.server.restart()
        self.network.look_again()

    def restore(self, chance: Random) -> None:
        """The cluster goes back to a backup, and rests until everybody has seen it."""
        backup = self.server.snapshot()
        self.write_several(chance)
        self.pass_time(chance.choice((0.5, 5, 100)))
        self._mend()
        self.may_go_back = True
        self._restore(backup)
        self.pass_time(600)

    def restore_unseen(self, chance: Random) -> None:
        """The same, and others read it at once, and write past what we hold before we can look.

        Something that is held was changed after the backup, so that it must be found (S30).
        """
        if not self.sees_crds:
            return
        self._rest(chance)
        backup = self.server.snapshot()
        self.write_several(chance)
        self._written += 1
        labels = {"color": chance.choice(_LABELS) if not self.selector else "red"}
        for namespace in _NAMESPACES:
            self.server.create(_widget(f"last{self._written}", labels, {"n": 0}), namespace)
        self.pass_time(chance.choice((10, 100)))
        self.may_go_back = True
        before = self._revision()
        self._restore(backup)
        self._others_read()
        while self._revision() <= before:
            self.write(chance)
        self.server.faults.add(Refuse(), seconds=chance.uniform(0.1, 20))
        self.pass_time(600)
        self.check()

    def _restore(self, backup: object) -> None:
        self.say("restore from a backup")
        self.server.restore(backup)  # type: ignore[arg-type]
        self.seen.clear()
        self.network.look_again()

    def _rest(self, chance: Random) -> None:
        """Nothing goes wrong, and nothing is put off, until all is known again."""
        self._mend()
        self._later += 1
        if self._crd() is None:
            self._install_crd(chance)
        if self.lossy or not self.sees_crds:  # see `settle`
            self._find_lost(chance)
        self.pass_time(400)

    def _find_lost(self, chance: Random) -> None:
        """What watches have lost, an audit finds, or a list."""
        if self.sees_crds and chance.random() < 0.6:
            self.pass_time(300)  # the streams that lose something have ended
            with suppress(AuditError):
                report = self.informer.audit(timeout=300)
                self.say(f"an audit finds {report}")
                assert not report.unresolved, f"the audit leaves {report.unresolved}"
                return
        for _ in range(MOST_AHEAD + 1):
            self._revision()  # no bookmark was so far ahead: each version that is held is too old
        self.compact(chance)
        self.restart(chance)

    def _others_read(self) -> None:
        """The API server's cache of the widgets begins now, at the backup."""
        headers = {"authorization": f"Bearer {self.server.token}"}
        path = WIDGETS.path("")
        self.server.send(Request("GET", path, (("resourceVersion", "0"),), headers)).take()

    def _revision(self) -> int:
        """The version of a write that was just made."""
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}
        return int(self.server.create(made, "default")["metadata"]["resourceVersion"])

    def overtake(self, chance: Random) -> None:
        """Bookmarks are ahead of their events, nothing else goes wrong, and nothing is lost."""
        self._rest(chance)
        # Ahead of what is there: what it is ahead of comes in the same stream.
        ahead = BookmarkAhead(newest=lambda: self._newest)
        self.say(f"{ahead} of all watches")
        self.server.faults.add(ahead, verb="watch", resource="widgets")
        self.pass_time(300)  # every watch is one that began with it
        self.write_several(chance)
        self.pass_time(10)
        self.check()
        self._mend()

    def change_schema(self, chance: Random) -> None:
        """A new field with a default: objects have it when they are read, and no event says so."""
        self._written += 1
        field = {"type": "integer", "default": self._written}
        operation = {"op": "add", "path": f"{_FIELDS}/f{self._written}", "value": field}
        with suppress(ApiError, LookupError):
            self.server.patch(CRD, [operation])
            self.say(f"the schema has f{self._written}")
        if chance.random() < 0.5:  # an event from after the change: the stream may resume
            self.after(0.5, self.write, chance)

    def drop_crd(self, chance: Random) -> None:
        """Delete it, and bring it back, at once or later; the next drop may come before that."""
        self._delete_crd()
        self.after(chance.choice((0.0, 0.1, 2, 40, 400)), self._install_crd, chance)

    def bury_crd(self, chance: Random, *, unseen: bool = False) -> None:
        """Delete it and, with nothing else going wrong, see the cache emptied and filled again.

        In one case of two, or ``unseen``, it goes, with its objects, while nobody can look: no
        event says so.
        """
        self._mend()
        self._later += 1
        if chance.random() < 0.5 or unseen:
            self.server.faults.add(Refuse(), seconds=chance.uniform(1, 20))
            self.restart(chance)
        self._delete_crd()
        self.pass_time(400)
        assert self.lister.keys() == [], "the CRD has gone, and its objects have not"
        self._install_crd(chance)
        self.write_several(chance)
        self.pass_time(20 if self.sees_crds else 120)
        self.check()

    def _delete_crd(self) -> None:
        self.anchored = False
        with suppress(ApiError, LookupError):
            self.server.delete(CRD)
            self.say("the CRD is deleted")

    def _install_crd(self, chance: Random) -> None:
        del chance
        with suppress(ApiError, LookupError, TimeoutError):
            self.server.install(widgets_crd())
            self.say("the CRD is installed")

    def _crd(self) -> Object | None:
        try:
            return self.server.get(CRD)
        except (ApiError, LookupError):
            return None

    def _mend(self) -> None:
        self.server.faults.clear()
        listener = Listener(self.seen, lambda: self.losing)
        self.server.faults.add(listener, verb="watch", resource="widgets")
        if not self.sees_crds:
            self._forbid_crds()

    def _forbid_crds(self) -> None:
        self.server.faults.add(HttpStatus(403), resource="customresourcedefinitions")

    # -- what users do -------------------------------------------------------------------

    def add_handler(self, chance: Random) -> None:
        """One that may merge, raise, take its time, or take the place of another."""
        self._stir(chance)
        name = chance.choice((None, None, "mine"))
        number = self.number()
        most = _MOST[number % len(_MOST)]
        mine, coalesces = Random(chance.random()), chance.random() < 0.4
        handler = Listening(
            f"handler {number}",
            self.scheduler,
            mine,
            self.objections,
            merges=coalesces or most > 0,
            raises=chance.choice((0.0, 0.0, 0.3)),
            stalls=chance.choice((0.0, 0.05, 0.3)),
        )
        replaced = [each for each in self.handlers if name and each.name.endswith(name)]
        if name is not None:
            handler.name += f" {name}"
        registration = self.informer.add_event_handler(
            on_event=handler.on_event,
            coalesce=coalesces,
            max_backlog=0 if coalesces else most,
            resync=chance.choice((None, 0, 20)),
            name=name,
        )
        handler.registration = registration
        handler.backlog = lambda: registration.backlog
        self.handlers.append(handler)
        for each in replaced:
            self.is_over(each)
        self.say(f"{handler.name} is added, coalesce={coalesces}, max_backlog={most}")

    def remove_handler(self, chance: Random) -> None:
        """No callback begins after that."""
        if self.handlers:
            self._stir(chance)
            handler = chance.choice(self.handlers)
            assert handler.registration is not None
            handler.registration.remove()
            self.is_over(handler)
            self.say(f"{handler.name} is removed")

    def _stir(self, chance: Random) -> None:
        """Much is under way, perhaps, when the next thing is done."""
        if chance.random() < 0.6:
            self.write_slowly(chance)

    def is_over(self, handler: Listening) -> None:
        """Nothing is told to a handler any more."""
        handler.over = True
        self.handlers = [each for each in self.handlers if each is not handler]

    def open_stream(self, chance: Random) -> None:
        """Somebody iterates, merges or not, for a while or for ever."""
        self._stir(chance)
        number, coalesces = self.number(), chance.random() < 0.4
        most = 0 if coalesces else _MOST[number % len(_MOST)]
        replay = Replay(f"stream {number}", merges=coalesces or most > 0)
        idle = chance.choice((None, None, 5.0, 100.0))
        stalls = chance.choice((0.0, 0.3))
        mine, informer = Random(chance.random()), self.informer

        def read() -> None:
            try:
                events = informer.events(coalesce=coalesces, max_backlog=most, idle_timeout=idle)
            except DynInformerError:
                return
            replay.backlog = lambda: events.backlog
            self.streams.append(replay)
            for event in events:
                replay.hear(event)
                if mine.random() < stalls:
                    self.scheduler.sleep(mine.choice((0.1, 3.0)))
                if mine.random() < 0.01:
                    break
            self.streams = [each for each in self.streams if each is not replay]

        self.scheduler.spawn(replay.name, read)
        self.say(
            f"{replay.name} is opened, coalesce={coalesces}, max_backlog={most}, "
            f"idle_timeout={idle}"
        )

    def add_index(self, chance: Random) -> None:
        """While events flow."""
        self._stir(chance)
        number, informer = self.number(), self.informer
        by_path, mine = chance.random() < 0.5, Random(chance.random())

        def function(obj: Object) -> list[str]:
            self.scheduler.point()
            if mine.random() < 0.1:
                self.scheduler.sleep(0.01)
            return [str(obj["spec"]["n"] % 3), obj["metadata"]["labels"]["color"]]

        def add() -> None:
            with suppress(DynInformerError):
                added = ".spec.n" if by_path else function
                informer.add_indexers({f"index-{number}": added})

        self.scheduler.spawn(f"indexer {number}", add)
        self.say(f"index-{number} is added, of a {'path' if by_path else 'function'}")
        self._stir(chance)

    def wait(self, chance: Random) -> None:
        """Somebody waits for something, for so long and no longer."""
        handler = chance.choice(self.handlers) if self.handlers else None
        timeout, factory, informer = chance.choice((0.5, 30.0)), self.factory, self.informer
        name, number = f"w{chance.randrange(8)}", self.number()
        kind = chance.choice(("handler", "factory", "object", "freshness"))

        def waits() -> None:
            began = self.clock.now()
            if kind == "factory":
                factory.wait_for_cache_sync(timeout)
            elif kind == "handler" and handler is not None and handler.registration is not None:
                synced = handler.registration.wait_for_sync(timeout)
                assert not synced or handler.registration.has_synced()
            elif kind == "object":
                with suppress(DynInformerError):
                    informer.wait_for("create", name=name, namespace="default", timeout=timeout)
            elif kind == "freshness":
                self._see_fresh(informer, timeout)
            spent = self.clock.now() - began
            assert spent <= timeout + 1, f"a wait of {timeout} s for a {kind} lasted {spent} s"

        self.scheduler.spawn(f"waiter {number}", waits)

    def _see_fresh(self, informer: SharedIndexInformer, timeout: float) -> None:
        """What is fresh has all that was written before it was asked whether it is (S35)."""
        if not self._is_honest() or self._warms_up():
            return
        revision, before = self._revision(), _versions(self._served())
        try:
            informer.wait_fresh(timeout=timeout)
        except DynInformerError:
            return
        if not self._is_honest() or self._warms_up():
            return  # meanwhile
        self._check_fresh(informer, revision, before)

    def _check_fresh(
        self, informer: SharedIndexInformer, revision: int, before: dict[str, int]
    ) -> None:
        """It has all that was there at that revision, or what came after it."""
        held, now = _versions(_by_key(informer.store.list())), _versions(self._served())
        for key, version in before.items():
            assert held.get(key, version) >= version, f"{key} is called fresh, and is older"
            assert key in held or now.get(key) != version, f"{key} is missing in what is fresh"
        for key in held.keys() - before.keys():
            assert held[key] > revision, f"{key} was gone before, and is called fresh"

    def see_own_writes(self, chance: Random) -> None:
        """Several write at a time, and each finds what it wrote in a cache that is fresh (S35).

        On a slow network: when one asks, what was written before is on its way, in several parts.
        """
        informer = self.informer
        # What is written while a part is on its way has less than twice as long to go.
        self.network.slow = chance.choice((0.05, 0.4, 0.45 * ON_THE_WAY))

        def writes(name: str, mine: Random) -> None:
            for _ in range(_OWN_WRITES):
                self.scheduler.sleep(mine.choice((0.0, 0.1, 1.0)) * mine.random())
                self.write(mine)
                revision, before = self._revision(), _versions(self._served())
                self.scheduler.sleep(0.0)  # what others ask in this moment may have missed it
                with suppress(StaleCacheError):
                    informer.wait_fresh(timeout=20)
                    self._check_fresh(informer, revision, before)
            writing.remove(name)

        self.say(f"all see what they write, on a network that takes {self.network.slow} s")
        writing = [f"writer {self.number()}" for _ in range(chance.choice((1, 2, 4)))]
        for name in list(writing):
            self.scheduler.spawn(name, partial(writes, name, Random(chance.random())))
        latest = self.scheduler.clock.now() + _OWN_WRITES * 22
        self.scheduler.block(lambda: not writing, latest)
        self.network.slow = 0.0
        self.pass_time(5)
        assert not writing, f"{writing} wait without end"

    def lose_the_last(self, chance: Random) -> None:
        """The last changes of all are lost, and an audit puts them right before anything follows.

        Now and then a bookmark does, from behind them.
        """
        self.losing = True
        while not self._differs():
            self.write(chance)
        self.pass_time(chance.choice((0.0, 0.0, 3.0)))
        report = self.informer.audit(timeout=300)
        self.say(f"an audit finds {report}")
        assert not report.unresolved, f"the audit leaves {report.unresolved}"
        assert not self._differs(), f"after the audit {self._differs()} are not as they should be"
        self.losing = False
        self.pass_time(10)

    def _differs(self) -> list[str]:
        """What is not held as the cluster has it."""
        return _differing(_by_key(self.lister.list()), self._served())

    def _is_honest(self) -> bool:
        """No server has said what is not so, or kept what it should have said."""
        return self.anchored and not (self.lossy or self.may_go_back)

    def _warms_up(self) -> bool:
        try:
            self._served()
        except ApiError:
            return True
        return False

    def _served(self) -> dict[str, Object]:
        """What the cache should have."""
        namespaces = _NAMESPACES if self.scopes == ("",) else self.scopes
        selector = self.selector or None
        return _by_key(
            obj
            for namespace in namespaces
            for obj in self.server.list("widgets.ex.io", namespace, label_selector=selector)
        )

    def read(self, chance: Random) -> None:
        """Reads answer whatever happens, and each with one moment's state."""
        objects = self.lister.list()
        keys = [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in objects]
        assert len(set(keys)) == len(keys), f"a list has keys twice: {sorted(keys)}"
        color = chance.choice(_LABELS)
        for each in self.lister.by_index("color", color):
            assert each["metadata"]["labels"]["color"] == color, f"{each} is in index of {color}"

    def start_anew(self, chance: Random) -> None:
        """The factory is shut down, which ends all of it in time, and another is made."""
        self._shut_down(chance)
        self._make_factory(chance)
        for _ in range(chance.randrange(1, 3)):
            self.add_handler(chance)
        self._perhaps_interrupted(self.factory.start, chance)
        if self.follows:
            self.follow(chance)

    def ask_again(self, chance: Random) -> None:
        """The informer is removed, and asked for again (S4)."""
        lister, before = self.lister, self.informer
        self._perhaps_interrupted(lambda: self.factory.remove(WIDGETS, timeout=60), chance)
        removed = self.factory.remove(WIDGETS, timeout=60)
        assert before.is_stopped(), "the informer was removed, and has not stopped"
        del removed
        lister.list()  # a stopped informer goes on answering (S19)
        self._all_over()
        self._make_informer_again(chance)
        self.say("the informer is removed, and asked for again")

    def _make_informer_again(self, chance: Random) -> None:
        indexers = {"color": ".metadata.labels.color"}
        found = self.factory.for_resource(WIDGETS, indexers=indexers, **self.options)  # type: ignore[arg-type]
        self.informer, self.lister = found.informer, found.lister
        self.add_handler(chance)
        self._perhaps_interrupted(self.factory.start, chance)

    def _perhaps_interrupted(self, does: Callable[[], object], chance: Random) -> None:
        """Do it, with an interrupt in the midst of it, perhaps, and then once more."""
        if chance.random() < 0.5:
            interrupted(self.scheduler, chance, does, again=True)
        else:
            does()

    def _shut_down(self, chance: Random) -> None:
        self.say("the factory is shut down")
        began = self.clock.now()
        if chance.random() < 0.5:
            interrupted(self.scheduler, chance, lambda: self.factory.shutdown(timeout=60))
        assert self.factory.shutdown(timeout=60), "the shutdown did not end in time"
        spent = self.clock.now() - began
        assert spent <= 21, f"the shutdown took {spent} s"  # as long as a handler stalls
        self._all_over()
        if self.following is not None:
            self.following.over = True
            self.following = None

    def _all_over(self) -> None:
        for each in list(self.handlers):
            self.is_over(each)
        for stream in self.streams:
            stream.over = True
        self.streams = []
        self.queues = []

    def open_queue(self, chance: Random) -> None:
        """Somebody works on the keys that events bring."""
        self._stir(chance)
        name = f"queue {self.number()}"
        queue = Working(
            name, self.informer, self.scheduler, Random(chance.random()), self.objections
        )
        self.queues.append(queue)
        self.say(f"{name} is opened, with {queue.begin()}")

    def close_queue(self, chance: Random) -> None:
        """Nobody works on anything after this."""
        if self.queues:
            queue = chance.choice(self.queues)
            self._stir(chance)
            self.say(f"{queue.name} is closed")
            queue.close()
            self.queues = [each for each in self.queues if each is not queue]

    def interrupt(self, chance: Random) -> None:
        """Ctrl-C reaches somebody."""
        self._stir(chance)
        interrupting.interrupt(self, chance)
        self._stir(chance)

    def come_or_go(self, chance: Random) -> None:
        """A CRD that is followed, or perhaps its objects; and again, before anybody looks."""
        for _ in range(chance.randrange(1, 4)):
            if chance.random() < 0.4:
                following.come_or_go(self.server, chance, self.say)
            else:
                self._written += 1
                following.write(self.server, chance, self._written, self.say)
            self.scheduler.point()

    def follow(self, chance: Random) -> None:
        """Somebody follows all of them, in the place of another who does."""
        if self.following is not None:
            self.following.close()
        mine = Random(chance.random())
        self.following = Following(self.factory, self.server, self.scheduler, mine, self.objections)
        self.say("somebody follows")

    # -- what must be so -----------------------------------------------------------------

    def look(self) -> None:
        """At any moment."""
        for objection in self.objections:
            raise objection
        for failure in self.scheduler.failures:
            raise failure
        for each in (*self.handlers, *self.streams):
            each.check_goes_on(self.clock.now())
        assert not self.errors.found, f"the package says that it failed: {self.errors.found[0]}"
        if self.anchored:
            self._check_synced()

    def _check_synced(self) -> None:
        """What says that it has synced has the anchors."""
        namespaces = _NAMESPACES if self.scopes == ("",) else self.scopes
        anchors = {f"{namespace}/{_ANCHOR}" for namespace in namespaces}
        if self.informer.has_synced():
            missing = anchors - set(self.lister.keys())
            assert not missing, f"it has synced without {missing}"
        for each in self.handlers:
            if each.registration is not None and each.registration.has_synced():
                missing = anchors - set(each.held)
                assert not missing, f"{each.name} has synced without {missing}"

    def check(self) -> None:
        """The cache is the cluster, and so is what each handler and stream was told."""
        status = self._catch_up()
        assert status.state is InformerState.WATCHING, f"not watching in the end: {status}"
        expected = self._served()
        wrong = self._differs()
        assert not wrong, f"the cache is not the cluster: {wrong}"
        for each in (*self.handlers, *self.streams):
            wrong = _differing(each.held, expected)
            assert not wrong, f"{each.name} holds something else than the cache: {wrong}"
            assert self.may_go_back or not each.went_back, (
                f"{each.name}: {each.went_back} went back"
            )
        for handler in self.handlers:
            assert handler.registration is not None
            assert handler.registration.has_synced(), f"{handler.name} never synced"
        for queue in self.queues:
            wrong = queue.not_worked_on(expected)
            assert not wrong, f"{queue.name}: the last state of {wrong} was never worked on"
        if self.following is not None:
            self.following.check(self.may_go_back)
        self._check_indexes(expected)
        self._check_requests()

    def _catch_up(self) -> InformerStatus:
        """Let those that take their time hear all that was told, and a look at the server end.

        Gives how it stands then. A moment later a watch may have come to its end, and another look
        at the server may have begun.
        """
        for _ in range(100):
            status = self.informer.status()
            if status.state is InformerState.WATCHING and not self._backlog():
                break
            self.pass_time(7)
        self.look()
        return status

    def _backlog(self) -> int:
        behind = sum(each.backlog() for each in (*self.handlers, *self.streams))
        behind += sum(each.backlog() for each in self.queues)
        return behind + (self.following.backlog() if self.following is not None else 0)

    def _check_indexes(self, expected: dict[str, Object]) -> None:
        indexer = self.informer.indexer
        for name, function in indexer.get_indexers().items():
            values: dict[str, set[str]] = {}
            for key, obj in expected.items():
                for value in set(as_function(function)(obj)):
                    values.setdefault(value, set()).add(key)
            assert set(indexer.list_index_func_values(name)) == set(values), f"index {name}"
            for value, keys in values.items():
                assert set(indexer.index_keys(name, value)) == keys, f"index {name}, {value}"

    def _check_requests(self) -> None:
        """Of no reflector came more than so many requests a minute that brought nothing (S29)."""
        by_channel: dict[int, list[float]] = {}
        for asked in self.network.asked:
            if _counts(asked) and asked.channel is not self._source:  # discovery's
                by_channel.setdefault(id(asked.channel), []).append(asked.moment)
        for moments in by_channel.values():
            for first, last in zip(moments, moments[ALLOWANCE:], strict=False):
                assert last - first >= PERIOD, f"more than {ALLOWANCE} requests from {first} on"

    # -- a whole run -----------------------------------------------------------------------

    def acts(self) -> Sequence[Act]:
        """What may happen, as often as it is here."""
        chance = Random(f"{self.seed} acts")
        acts: list[Act] = [
            *[self.write] * 6,
            *[self.write_several] * 2,
            *[self.write_slowly] * 3,
            *[self.break_something] * 9,
            self.compact,
            self.restart,
            self.change_schema,
            self.drop_crd,
            *[self.add_handler] * 2,
            self.remove_handler,
            *[self.open_stream] * 2,
            self.add_index,
            self.wait,
            self.read,
            self.open_queue,
            self.close_queue,
            *[self.interrupt] * 2,
            *([self.come_or_go] * 6 + [self.follow] if self.follows else []),
        ]
        rare: Iterable[tuple[float, Act]] = (
            (0.2, self.bury_crd),
            (0.15, self.restore),
            (0.15, self.restore_unseen),
            (0.15, self.overtake),
            (0.2, self.start_anew),
            (0.2, self.ask_again),
        )
        return [*acts, *(act for share, act in rare if chance.random() < share)]

    def step(self, number: int) -> None:
        """One thing happens, and some time passes; the same whatever happened before."""
        chance = Random(f"{self.seed} step {number}")
        act = chance.choice(self.acts())
        self.say(f"-- {number}: {getattr(act, '__name__', act)}")
        act(chance)
        self.pass_time(chance.choice(_PAUSES))

    def settle(self) -> None:
        """Faults stop, the CRD is there; some writes later all should be known."""
        chance = Random(f"{self.seed} end")
        self.say("-- all is well from here on")
        self._mend()
        self._later += 1
        if self._crd() is None:
            self._install_crd(chance)
        if self.lossy or not self.sees_crds:
            # A change of the schema within ten minutes of another goes unseen without CRDs.
            self._find_lost(chance)
        self.pass_time(10)
        for _ in range(5):
            self.write(chance)
            self.pass_time(chance.uniform(0, 5))
        if self.sees_crds:
            self.change_schema(chance)
        self.pass_time(900)

    def finish(self) -> None:
        """It stays so; what is asked for then is so; and all of it ends."""
        self.check()
        self.pass_time(200)
        self.check()
        for act, often in (
            (self.see_own_writes, _SEE_OWN_WRITES),
            (self.lose_the_last, _LOSE_THE_LAST),
        ):
            chance = Random(f"{self.seed} {act.__name__}")
            if chance.random() < often:
                act(chance)
                self.check()
        self._shut_down(Random(f"{self.seed} shutdown"))
        self.scheduler.sleep(130)  # the longest of the waits that were begun
        alive = self.scheduler.alive
        assert not alive, f"these have no end: {', '.join(alive)}"
        self.look()


def _by_key(objects: Iterable[Object]) -> dict[str, Object]:
    return {f"{each['metadata']['namespace']}/{each['metadata']['name']}": each for each in objects}


def _differing(held: dict[str, Object], expected: dict[str, Object]) -> list[str]:
    keys = sorted(held.keys() | expected.keys())
    return [key for key in keys if held.get(key) != expected.get(key)]


def _versions(objects: dict[str, Object]) -> dict[str, int]:
    return {key: int(obj["metadata"]["resourceVersion"]) for key, obj in objects.items()}


def _counts(asked: Asked) -> bool:
    return not any(name == "continue" for name, _ in asked.query) and not asked.advanced


class _Errors(logging.Handler):
    """What the package logs as an error, except that a user's handler or work failed."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Remember it."""
        if not record.msg.startswith(("handler %s of %s failed", "%s: the work on %s failed")):
            error = record.exc_info[1] if record.exc_info else None
            self.found.append(f"{record.getMessage()} ({error!r})")


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _widget(name: str, labels: dict[str, str], spec: Object) -> Object:
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": metadata, "spec": spec}
