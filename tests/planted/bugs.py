"""The bugs: what somebody might write by mistake who knows informers, and which tests object.

Each is one line, or a few where the line alone could be several. When the code moves on, the
bug is planted anew in what it has become: `test_bugs` sees to that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True)
class Bug:
    """Text that is in a file of the package once, what stands there instead, and who objects."""

    name: str
    file: str
    """Below ``dyninformer/``."""
    old: str
    new: str
    tests: tuple[str, ...]
    """Files of tests, or single ones, below ``tests/``; they are run in this order."""


@dataclass(frozen=True)
class _Room:
    """Bugs of one file, and who objects to them unless they say otherwise."""

    file: str
    tests: tuple[str, ...]

    def bug(self, name: str, old: str, new: str, *tests: str) -> Bug:
        return Bug(name, self.file, old, new, tests or self.tests)


_PROTOCOL = _Room(
    "watching/protocol.py",
    ("watching/test_protocol.py", "watching/test_missing.py", "watching/test_session.py"),
)
_STATES = _Room("watching/states.py", ("watching/test_protocol.py",))
_BACKOFF = _Room("watching/backoff.py", ("watching/test_backoff.py", "watching/test_protocol.py"))
_MISSING = _Room("watching/missing.py", ("watching/test_missing.py",))
_DECODE = _Room("watching/decode.py", ("watching/test_decode.py",))
_SESSION = _Room("watching/session.py", ("watching/test_session.py",))
_REFLECTOR = _Room("watching/reflector.py", ("watching/test_reflector.py",))
_AWAITED = _Room("watching/awaited.py", ("watching/test_awaited.py",))
_GRANTS = _Room("watching/grants.py", ("watching/test_grants.py",))
_PROBER = _Room("watching/prober.py", ("watching/test_prober.py",))
_SILENCE = _Room("watching/silence.py", ("watching/test_silence.py", "watching/test_prober.py"))
_WITNESS = _Room("watching/witness.py", ("watching/test_witness.py",))
_PULSE = _Room("watching/pulse.py", ("watching/test_pulse.py",))
_FRESHNESS = _Room("watching/freshness.py", ("watching/test_freshness.py",))
_AUDIT = _Room("watching/audit.py", ("watching/test_audit.py",))
_TLS = _Room("watching/tls.py", ("watching/test_tls.py",))

_DECIDE = _Room("store/decide.py", ("store/test_decide.py", "store/test_store.py"))
_RELIST = _Room(
    "store/relist.py", ("store/test_relist.py", "store/test_store.py", "store/test_indexes.py")
)
_STORE = _Room("store/store.py", ("store/test_store.py", "store/test_indexes.py"))
_INDEXES = _Room("store/indexes.py", ("store/test_indexes.py",))
_REPACKING = _Room("store/repacking.py", ("store/test_repacking.py",))

_THREADS = _Room("threads.py", ("test_threads.py",))
_DISPATCH = _Room("delivery/dispatch.py", ("delivery/test_dispatch.py", "delivery/test_stream.py"))
_QUEUE = _Room("delivery/queue.py", ("delivery/test_queue.py", "delivery/test_dispatch.py"))
_HANDLERS = _Room("delivery/handlers.py", ("delivery/test_handlers.py",))
_WORKER = _Room("delivery/worker.py", ("delivery/test_worker.py",))
_KNOWN = _Room("discovery/known.py", ("discovery/test_known.py",))
_SELECTION = _Room("frames/selection.py", ("frames/test_selection.py",))
_TYPES = _Room("frames/types.py", ("frames/test_types.py",))
_ARROW = _Room("frames/arrow.py", ("frames/test_arrow.py",))
_SQL = _Room("frames/sql.py", ("frames/test_sql.py",))
_HTML = _Room("display/html.py", ("display/test_html.py",))
_FORMS = _Room("display/forms.py", ("display/test_notebook.py",))
_EVENTS = _Room(
    "delivery/events.py",
    ("delivery/test_events.py", "delivery/test_queue.py", "delivery/test_dispatch.py"),
)
_STREAM = _Room("delivery/stream.py", ("delivery/test_stream.py",))

_FOLLOW = _Room("follow.py", ("test_follow.py",))
_FACTORY = _Room("factory.py", ("test_factory.py", "test_follow.py"))
_LOOKUP = _Room("discovery/lookup.py", ("discovery/test_lookup.py",))
_CATALOG = _Room("discovery/catalog.py", ("discovery/test_catalog.py", "discovery/test_lookup.py"))
_CLIENT = _Room("discovery/discovery_client.py", ("discovery/test_lookup.py",))
_SELECTORS = _Room("selectors.py", ("test_selectors.py",))
_KEYS = _Room("work/keys.py", ("work/test_keys.py",))
_WAITING = _Room("waiting.py", ("test_waiting.py",))
_PATHS = _Room("jsonpath/indexing.py", ("jsonpath/test_indexing.py",))
_COMPARED = _Room("jsonpath/comparisons.py", ("jsonpath/test_comparisons.py",))

_RECEIVE = _Room("store/receive.py", ("conformance/informer/test_shards.py",))
_SHARING = _Room("scale/sharing.py", ("scale/test_sharing.py", "scale/test_rounds.py"))
_ROUNDS = _Room("scale/rounds.py", ("scale/test_rounds.py", "scale/test_membership.py"))
_FENCES = _Room("scale/fences.py", ("scale/test_fences.py",))
_ELECTION = _Room("scale/election.py", ("scale/test_election.py",))
_LEASES = _Room("scale/leases.py", ("scale/test_leases.py", "scale/test_asking.py"))
_ASKING = _Room("scale/asking.py", ("scale/test_asking.py",))
_ASSIGNMENT = _Room("scale/assignment.py", ("scale/test_assignment.py",))
_MEMBERSHIP = _Room("scale/membership.py", ("scale/test_membership.py",))
_SHARDED = _Room("scale/sharded.py", ("scale/test_sharded.py", "scale/test_membership.py"))
_LEADER = _Room("scale/leader.py", ("scale/test_leader.py",))


def _protocol() -> Iterable[Bug]:
    yield _PROTOCOL.bug(
        "a paged list is watched from its last page's version",
        "version = state.version or end.version",
        "version = end.version or state.version",
    )
    yield _PROTOCOL.bug(
        "after a 410 the same version is resumed from",
        'memory = memory.reread("expired", plan)',
        "memory = memory.plan(plan)",
    )
    yield _PROTOCOL.bug(
        "what a server asks to wait is ignored",
        "memory.health.backoff.delay(random, retry_after)",
        "memory.health.backoff.delay(random)",
    )
    yield _PROTOCOL.bug(
        "a 401 waits instead of reading the credentials anew",
        "if refusal.status.code == 401 and not",
        "if refusal.status.code == 407 and not",
    )
    yield _PROTOCOL.bug(
        "credentials are read anew for ever after one 401",
        "return replace(memory, health=replace(memory.health, unauthorized=False, lasting=0))",
        "return memory",
    )
    yield _PROTOCOL.bug(
        "one look at discovery proves that a resource is gone",
        "if since is not None and now - since >= _SEEN_TWICE_WITHIN:",
        "if since is None or now - since >= _SEEN_TWICE_WITHIN:",
    )
    yield _PROTOCOL.bug(
        "the continue token is forgotten",
        "Ask(ListPage(end.continue_, limited=",
        'Ask(ListPage("", limited=',
    )
    yield _PROTOCOL.bug(
        "an expired continue token leads to pages again",
        "return _proceed(state.memory.plan(Plan.WHOLE), now, random)",
        "return _proceed(state.memory.plan(Plan.PAGED), now, random)",
    )
    yield _PROTOCOL.bug(
        "a 410 right after a paged list leads to another one",
        "plan = Plan.WHOLE if listed is Plan.PAGED else Plan.STREAM",
        "plan = Plan.PAGED if listed is Plan.PAGED else Plan.STREAM",
    )
    yield _PROTOCOL.bug(
        "that streaming lists are refused is not remembered",
        "replace(memory.next_read, streams=False)",
        "replace(memory.next_read, plan=Plan.PAGED)",
    )
    yield _PROTOCOL.bug(
        "a third cut is needed before an ordinary list", "if cuts >= 2:", "if cuts >= 3:"
    )
    yield _PROTOCOL.bug(
        "what a cut streaming list brought is kept for the next",
        "return isinstance(after, Streaming | Listing) and continued",
        "return isinstance(after, Streaming | Listing | BackingOff) and continued",
    )
    yield _PROTOCOL.bug(
        "a list older than what is held is taken at once",
        "return not memory.next_read.went_back and",
        "return memory.next_read.went_back and",
    )
    yield _PROTOCOL.bug(
        "a restored cluster's older list is never taken",
        "return not memory.next_read.went_back and versions.older(version, memory.version)",
        "return versions.older(version, memory.version)",
    )
    yield _PROTOCOL.bug(
        "no look at the server after a lost connection",
        "memory = _remember_end(state, now).doubt()",
        "memory = _remember_end(state, now)",
    )
    yield _PROTOCOL.bug(
        "no look at the server after a stream without a line",
        "    if not state.lines:\n        memory = memory.doubt()",
        "    if state.lines:\n        memory = memory.doubt()",
    )
    yield _PROTOCOL.bug(
        "the watch after a look begins behind the last change",
        "return str(int(replay.expected.version) - 1)",
        "return replay.expected.version",
    )
    yield _PROTOCOL.bug(
        "another past is taken for ours if it is as long",
        "elif versions.number(version) is not None and not _same_moment(state, version):",
        "elif versions.number(version) is None and not _same_moment(state, version):",
    )
    yield _PROTOCOL.bug(
        "the end of a watch at its timeout counts as early",
        "lasted >= state.timeout - _NEAR_THE_END",
        "lasted >= state.timeout + _NEAR_THE_END",
    )
    yield _PROTOCOL.bug(
        "a stream that ends at once is no failure",
        "if lasted < _AT_ONCE and not state.advanced:",
        "if lasted < 0 and not state.advanced:",
    )
    yield _PROTOCOL.bug(
        "each early end leads to a list",
        "if blind and now - memory.next_read.listed_early_at >= _LISTED_EARLY_EVERY:",
        "if blind:",
    )
    yield _PROTOCOL.bug(
        "a changed schema is not listed",
        "if memory.position.current and memory.crd_changed:",
        "if not memory.position.current and memory.crd_changed:",
    )
    yield _PROTOCOL.bug(
        "the CRD's generation is taken at the end of a list",
        "            generation=state.generation,",
        "            generation=memory.crd.generation,",
    )
    yield _PROTOCOL.bug(
        "a broken frame is asked for again and again",
        "again = memory.position.broken_from == memory.version",
        "again = memory.position.broken_from == memory.version == ''",
    )
    yield _PROTOCOL.bug(
        "an ERROR in the stream is watched on from",
        'return _back_off(memory.reread("error"), reasons',
        "return _back_off(memory, reasons",
    )
    yield _PROTOCOL.bug(
        "a stream that brought events counts as a barren request",
        "budget=memory.health.budget.refund(state.asked)",
        "budget=memory.health.budget",
    )
    yield _PROTOCOL.bug(
        "a quiet watch is cut after a minute",
        "return min(state.timeout, _LONGEST_WATCH) + _GRACE",
        "return ANSWER_WITHIN",
    )
    yield _PROTOCOL.bug(
        "news of the CRD do not end a wait for it",
        "if isinstance(state, BackingOff) and state.wakes:",
        "if isinstance(state, BackingOff) and not state.wakes:",
    )
    yield _PROTOCOL.bug(
        "a resource that is gone keeps its objects",
        "    if before.version:\n        effects = (Clear(), *effects)",
        "    if False:\n        effects = (Clear(), *effects)",
    )
    yield _PROTOCOL.bug(
        "every relist tells initial events", "Swap(first=not before.synced", "Swap(first=True"
    )
    yield _PROTOCOL.bug(
        "a crash leaves half a new state behind",
        "    return after, (Discard(), *effects)",
        "    return after, effects",
    )
    yield _PROTOCOL.bug(
        "a bookmark in a watch goes back to an older version",
        'if version in ("", state.version) or versions.older(version, state.version):',
        'if version in ("", state.version):',
    )
    yield _STATES.bug(
        "the backoff is forgotten with each connection",
        'return replace(self, alive_since=alive, reason="",',
        'return replace(self, backoff=NO_FAILURE, alive_since=alive, reason="",',
    )
    yield _STATES.bug(
        "the backoff is never forgotten",
        "now - self.alive_since >= STEADY_AFTER",
        "now - self.alive_since >= 1000 * STEADY_AFTER",
    )
    yield _STATES.bug(
        "Expired without a code is no expiry",
        'return self.code == 410 or self.reason in ("Expired", "Gone")',
        "return self.code == 410",
    )
    yield _STATES.bug(
        "requests are not counted",
        "return replace(self, health=self.health.spend(now))",
        "return self",
    )
    yield _STATES.bug(
        "a transform that always fails syncs an empty cache",
        "return self.failed > allowed or 0 < self.failed == self.objects",
        "return self.failed > self.objects",
    )
    yield _PULSE.bug(
        "what was asked before the server was back, and fails after it, waits for long",
        "wake = [each.waits_until is not None and self.was_away(each) for each in seen]",
        "wake = [False for _ in seen]",
    )
    yield _PULSE.bug(
        "a server that has just come back is asked as seldom as one that was there",
        "if ready and now > back + _RETURNS:",
        "if ready and not self.away:",
    )
    yield _PULSE.bug(
        "who is woken tries later than without",
        "min(now + random.uniform(0, spread), one.waits_until or now)",
        "now + random.uniform(0, spread) + 0.1",
    )
    yield _SILENCE.bug(
        "the same stream has a heartbeat each time",
        "key=lambda place: (streams[place].listened, -streams[place].version)",
        "key=lambda place: -streams[place].version",
    )
    yield _SILENCE.bug(
        "a look that has shown nothing is made again as soon",
        "(OVERDUE if likely else FIRST_OVERDUE) * 2.0**self.looks",
        "(OVERDUE if likely else FIRST_OVERDUE)",
    )
    yield _SILENCE.bug(
        "a server that is only slow has its clients come anew each minute",
        "wave_gap=min(2 * gap, _CALM)",
        "wave_gap=gap",
    )
    yield _SILENCE.bug(
        "streams that are silent, too, are left all at once",
        "[at + random.uniform(0, spread) for at in silent]",
        "list(silent)",
    )
    yield _SILENCE.bug(
        "the connection that is kept is used only when a stream is silent",
        "        at = min(at, self.heartbeat_by)\n",
        "",
    )
    yield _SILENCE.bug(
        "a first bookmark is missing although the server came further after its turn",
        "self.passed <= seen_by",
        "self.passed < float('inf')",
    )
    yield _FRESHNESS.bug(
        "an event that comes shows all that was written before it",
        "    return found is not None and found >= since and not behind\n",
        "    return found is not None and fresh.as_of is not None and fresh.as_of >= since\n",
    )
    yield _AUDIT.bug(
        "what an audit finds is never put right by a list",
        "Repair(tuple(keys), by_list=not shown)",
        "Repair(tuple(keys))",
    )
    yield _PROTOCOL.bug(
        "a list for an audit waits for what is never shown",
        "isinstance(state, Watching) and (by_list or state.replay is None)",
        "isinstance(state, Watching) and state.replay is None",
        "watching/test_repairing.py",
    )
    yield _AUDIT.bug(
        "an audit waits for what is never shown",
        "shown = self._reflector.takes_repairs() and (turn == 0 or self._delivered())",
        "shown = turn == 0 or self._delivered()",
    )
    yield _WITNESS.bug(
        "a new connection's silence shows that old ones are dead",
        "dead = silent.reused or (",
        "dead = not answered or (",
    )
    yield _WITNESS.bug(
        "a server that is slow to all is taken for one whose streams are dead",
        "if dead and since_boot() - begun <= QUICKLY:",
        "if dead:",
    )
    yield _WITNESS.bug(
        "a server that ends no watch has its clients come anew again and again",
        "self._endless = answered",
        "self._endless = False",
    )
    yield _TLS.bug(
        "a certificate that was rotated is not loaded",
        "if known is not None and known[0] == files:",
        "if known is not None:",
    )
    yield _TLS.bug(
        "one that verifies nothing shares its context with one that does",
        '    "cert_reqs",\n',
        "",
    )
    yield _TLS.bug(
        "a connection forgets its certificates once it has connected",
        "vars(connection).update(own, ssl_context=None)",
        "pass",
    )
    yield _TLS.bug(
        "each of many connections that begin at once makes a context",
        "            with self._lock:\n",
        "            if self._lock:\n",
    )
    yield _PROBER.bug(
        "no other connection is kept when a heartbeat's stream was stopped",
        "                if not ended:\n",
        "                if ended is None:\n",
    )
    yield _PROBER.bug(
        "a stream that brings something else is left",
        "heard is not None and heard < owed.since and not",
        "heard is not None and not",
    )
    yield _PROBER.bug(
        "a bookmark is missed by a stream that need not have it",
        "due = stream.lacks_bookmark(now)",
        "due = True",
    )
    yield _PROBER.bug(
        "who waits for the same grant is not told that another one has it",
        "granted = granted or before is not None",
        "granted = False",
    )
    yield _GRANTS.bug(
        "a right that is never given is asked for every few seconds",
        "distance = LATER if age >= RECENT else min",
        "distance = min",
    )
    yield _GRANTS.bug(
        "one tries again and again, and the others never",
        "key=lambda place: waiting[place].tried",
        "key=lambda place: -waiting[place].tried",
    )
    yield _AWAITED.bug(
        "what was refused is not tried again when others say so",
        "return replace(state, until=min(state.until, until))",
        "return state",
    )
    yield _PROTOCOL.bug(
        "a list older than what is held is asked for again as late as after any failure",
        "BackingOff(memory, now, now + random.uniform(*_OLDER_AGAIN))",
        "BackingOff(memory, now, now + memory.health.backoff.delay(random))",
    )
    yield _BACKOFF.bug(
        "what a server asks to wait has no bound",
        "asked = min(max(0.0, retry_after), LONGEST_RETRY_AFTER)",
        "asked = max(0.0, retry_after)",
    )
    yield _BACKOFF.bug(
        "one request a minute too many",
        "excess = len(self.spent) + requests - ALLOWANCE",
        "excess = len(self.spent) + requests - ALLOWANCE - 1",
    )
    yield _BACKOFF.bug(
        "waits grow by addition",
        "FIRST_DELAY * 2 ** min(self.failures - 1, 10)",
        "FIRST_DELAY * min(self.failures, 10)",
    )
    yield _BACKOFF.bug(
        "waits are not spread", "random.uniform(self.base, _SPREAD * self.base)", "self.base"
    )
    yield _MISSING.bug(
        "any 404 proves that a CRD is gone",
        "if status.code == 404 and status.name == name:",
        "if status.code == 404:",
    )
    yield _MISSING.bug(
        "a CRD that may not be seen is gone",
        "if status.code == 404 and status.name == name:",
        "if status.code in (403, 404) and status.name in (name, ''):",
    )
    yield _DECODE.bug(
        "a bookmark's version is not taken",
        "            self._is_news(metadata.resource_version)\n            return False",
        "            return False",
    )
    yield _DECODE.bug(
        "an event from before the stream's start is applied",
        'return not versions.older(version, self._start or "")',
        "return True",
    )
    yield _DECODE.bug(
        "an event behind a newer bookmark is dropped",
        'return not versions.older(version, self._start or "")',
        "return False",
    )
    yield _DECODE.bug(
        "an unusable object holds the stream's version back",
        "        if self._start is not None:\n            self._is_news(version)",
        "        if self._start is None:\n            self._is_news(version)",
    )
    yield _DECODE.bug(
        "any bookmark ends the initial events",
        'if metadata.annotations is None or metadata.annotations.mark != "true":',
        'if metadata.resource_version == "":',
    )
    yield _SESSION.bug(
        "the state is synced before the store is",
        "        self._change_store(effects, version)\n        self.state = after\n",
        "        self.state = after\n        self._change_store(effects, version)\n",
    )
    yield _SESSION.bug(
        "a delete among the initial events is forgotten",
        "                relist.remove(received)",
        "                relist.keep(received.key)",
    )
    yield _SESSION.bug(
        "an unusable object of a list is deleted",
        "                relist.keep(key)",
        "                pass",
    )
    yield _REFLECTOR.bug(
        "the reflector does not read credentials anew",
        "if asked.fresh_credentials:",
        "if not asked.fresh_credentials:",
    )
    yield _REFLECTOR.bug(
        "news of the CRD that come with a chunk are looked at later",
        "            self._news = False  # before looking",
        "            pass  # before looking",
    )


def _store() -> Iterable[Bug]:
    yield _DECIDE.bug(
        "an older event replaces a newer state",
        "if live and older(received.version, version):",
        "if live and older(version, received.version):",
    )
    yield _DECIDE.bug(
        "an older DELETED deletes a newer state",
        "            return None\n        if older(received.version, version):\n"
        "            return None\n        return Write(",
        "            return None\n        return Write(",
    )
    yield _DECIDE.bug(
        "the DELETED of another object of the name deletes this one",
        "        if uid and received.uid and uid != received.uid:",
        "        if uid and not received.uid:",
    )
    yield _DECIDE.bug(
        "another object of the name is a mere update",
        "recreated = bool(uid and received.uid and uid != received.uid)",
        "recreated = False",
    )
    yield _DECIDE.bug(
        "the index is left as it was when an object is created again",
        "if functions.only_paths and row == old_row:",
        "if functions.only_paths and (recreated or row == old_row):",
        "store/test_decide.py",
        "store/test_store.py",
        "store/test_indexes.py",
        "store/test_state_machine.py",
    )
    yield _DECIDE.bug(
        "a delete that a relist finds claims to know the last state",
        "delta = Delta(key, current, None, final_state_unknown=True)",
        "delta = Delta(key, current, None)",
        "store/test_relist.py",
    )
    yield _DECIDE.bug(
        "another content of the same version is not told",
        "uid == received.uid and same_content(plain, data):",
        "uid == received.uid:",
    )
    yield _DECIDE.bug(
        "true is the same as 1",
        "return left == right and _same_types(left, right)",
        "return bool(left == right)",
    )
    yield _DECIDE.bug(
        "the second of two events at once is compared with what was before both",
        "current = made[key] if key in made else entry_of(namespace, key)",
        "current = entry_of(namespace, key)",
    )
    yield _DECIDE.bug(
        "what the transform failed on is deleted",
        "return None if received.failure else self.removed(",
        "return self.removed(",
        "store/test_transforms.py",
        "store/test_store.py",
        "store/test_decide.py",
    )
    yield _RELIST.bug(
        "a relist deletes nothing",
        "if key in self._gone or self._deletes_missing:",
        "if key in self._gone:",
    )
    yield _RELIST.bug(
        "what was said to be gone stays under keep_all",
        "if key in self._gone or self._deletes_missing:",
        "if self._deletes_missing:",
    )
    yield _RELIST.bug(
        "a relist is swapped in without the lock",
        "            with store.lock:\n                if self._functions",
        "            if True:\n                if self._functions",
    )
    yield _RELIST.bug(
        "a relist tells additions before deletes",
        "            deltas.append(Delta(key, None, entry, initial=first) if",
        "            deltas.insert(0, Delta(key, None, entry, initial=first) if",
    )
    yield _RELIST.bug(
        "a relist swaps in indexes that were replaced",
        "continue  # an index was added in between",
        "pass",
    )
    yield _RELIST.bug(
        "a relist of one namespace deletes the others",
        "namespaces = [self._scope] if self._scope else list(entries)",
        "namespaces = list(entries)",
    )
    yield _RELIST.bug(
        "what is taken back from a new state stays in its indexes",
        "                index.replace(key, values, ())",
        "                index.replace(key, (), ())",
    )
    yield _RELIST.bug(
        "a relist's updates are not written",
        "for write in self._updates.values():\n                    store.entries.write(write)",
        "for write in ():\n                    store.entries.write(write)",
    )
    yield _STORE.bug(
        "events are applied with indexes that were replaced",
        "            if entries.functions is not functions:\n                return False",
        "            if entries.functions is None:\n                return False",
    )
    yield _STORE.bug(
        "events are applied without the lock",
        "        with self.lock:\n            if entries.functions is not functions:",
        "        if True:\n            if entries.functions is not functions:",
    )
    yield _STORE.bug(
        "keys written while an index is built are forgotten",
        "            self._written.add(key)",
        "            pass",
    )
    yield _STORE.bug(
        "recompression replaces a newer entry",
        "if entries is not None and entries.get(key) is before:",
        "if entries is not None and key in entries:",
    )
    yield _STORE.bug(
        "a namespace without objects is listed",
        "                if not entries:\n",
        "                if entries is None:\n",
    )
    yield _STORE.bug(
        "a shared object is that of an older entry",
        "        if known is entry:",
        "        if known is not None:",
        "store/test_store.py",
        "test_lister.py",
    )
    yield _STORE.bug(
        "a view goes on changing",
        "return {name: entries.copy() for name, entries in self.by_namespace.items()}",
        "return dict(self.by_namespace)",
    )
    yield _STORE.bug(
        "the number of objects grows with updates",
        "            if held is None:\n                self.count += 1",
        "            self.count += 1\n            if held is None:",
    )
    yield _STORE.bug(
        "the bytes that are held grow with updates",
        "self.size += len(new) - len(held)",
        "self.size += len(new)",
    )
    yield _STORE.bug(
        "what changed while it was packed again goes back to what it was",
        "if entries is not None and entries.get(key) is before:",
        "if entries is not None and key in entries:",
        "store/test_repacking.py",
    )
    yield _STORE.bug(
        "what was packed again counts as large as it was",
        "self.size += len(after) - len(before)",
        "self.size += 0",
        "store/test_repacking.py",
    )
    yield _REPACKING.bug("moving takes a whole processor", "return _RESTS * spent", "return 0.0")
    yield _REPACKING.bug(
        "what came since a move began stays as it was",
        "again, self._again = self._again, False",
        "again, self._again = False, False",
    )
    yield _REPACKING.bug(
        "a failed move is one that never ends",
        "            self._fail()\n            raise\n",
        "            raise\n",
    )
    yield _INDEXES.bug(
        "an object stays under values that it lost",
        "            if value not in new:\n                self._discard(value, key)",
        "            if value in new:\n                self._discard(value, key)",
    )
    yield _INDEXES.bug(
        "another object loses its place in the index",
        "rest = tuple(each for each in many if each != key)",
        "rest = many[1:]",
        "store/test_indexes.py",
        "store/test_state_machine.py",
    )
    yield _INDEXES.bug(
        "a relist's index hides the one key that was there",
        "if held is None and value not in self._one:",
        "if held is None:",
        "store/test_indexes.py",
        "store/test_state_machine.py",
    )


def _delivery() -> Iterable[Bug]:
    yield _THREADS.bug(
        "an interrupt takes a lock away from who has just taken it",
        "    for returned in iter(function, _NOTHING):\n        return returned\n",
        "    return function()\n",
    )
    yield _DISPATCH.bug(
        "a late handler is not told what is held",
        "        if replay and len(store):",
        "        if replay and not len(store):",
    )
    yield _DISPATCH.bug(
        "a stream without initial events gets them",
        "        if replay and len(store):",
        "        if len(store):",
    )
    yield _DISPATCH.bug(
        "a late handler is told each change twice",
        "self._subscribers = (*self._subscribers, subscriber)",
        "self._subscribers = (*self._subscribers, *(subscriber,) * (1 + self._synced))",
    )
    yield _DISPATCH.bug(
        "a late handler's first look and its registration are two sections",
        "            subscriber.queue.put_walk(ViewWalk(store.view(), sync=False))",
        "            view = store.view()\n            store.lock.release()\n"
        "            store.lock.acquire()\n"
        "            subscriber.queue.put_walk(ViewWalk(view, sync=False))",
        "simulation/test_simulation.py",
    )
    yield _DISPATCH.bug(
        "a resync reaches every handler",
        "                    queue.put_walk(ViewWalk(store.view(), sync=True))",
        "                    [each.queue.put_walk(ViewWalk(store.view(), sync=True))"
        " for each in self._subscribers]",
    )
    yield _DISPATCH.bug(
        "a resync comes as additions",
        "ViewWalk(store.view(), sync=True)",
        "ViewWalk(store.view(), sync=False)",
    )
    yield _DISPATCH.bug(
        "a resync piles up before a slow handler",
        "busy = queue.walking or queue.missed",
        "busy = queue.missed",
    )
    yield _DISPATCH.bug(
        "a handler has synced before its informer",
        "        if self._synced:\n            self._mark(subscriber)",
        "        if not self._synced:\n            self._mark(subscriber)",
    )
    yield _DISPATCH.bug(
        "a handler of the same name stays beside the new one",
        "each.given_name == name and each is not but",
        "each.given_name == name and each is but",
    )
    yield _DISPATCH.bug(
        "what one queue missed is never told",
        "        if failed or any(each.queue.missed for each in self._subscribers):",
        "        if False:",
    )
    yield _DISPATCH.bug(
        "a removed handler's next resync stays due",
        "        if subscriber.timer is not None:\n            self._timers.cancel",
        "        if subscriber.timer is None:\n            self._timers.cancel",
    )
    yield _QUEUE.bug(
        "an update and a deletion merge to nothing",
        "if first.old is None and then.new is None:",
        "if then.new is None:",
    )
    yield _QUEUE.bug(
        "a merged update begins at a state that was not told",
        "        first.old,\n        then.new,",
        "        then.old,\n        then.new,",
    )
    yield _QUEUE.bug(
        "what is being told is merged with what follows",
        "        if isinstance(held, Delta) and held is not self._hand:",
        "        if isinstance(held, Delta):",
    )
    yield _QUEUE.bug(
        "a merged addition is no longer initial", "initial=first.initial", "initial=then.initial"
    )
    yield _QUEUE.bug(
        "a merged deletion shows an older state",
        "last=then.old if then.new is None else None",
        "last=None",
    )
    yield _QUEUE.bug(
        "the last object of a walk is not told",
        "                if self._at < len(item):",
        "                if self._at < len(item) - 1:",
    )
    yield _QUEUE.bug(
        "the next step of a walk is told before what changed it",
        "        if at is None or at < self.at:",
        "        if at is None or at <= self.at:",
    )
    yield _QUEUE.bug(
        "a handler has synced before it was told",
        "        elif self.backlog:\n            try:\n                self._append_mark",
        "        elif not self.backlog:\n            try:\n                self._append_mark",
    )
    yield _QUEUE.bug(
        "a change that comes right before the sleep is not heard",
        "            if self._has_items() or self.closed:\n                return True",
        "            if self.closed:\n                return True",
    )
    yield _QUEUE.bug(
        "what was missed is replaced by what came later",
        "step = merged(self._missed[key], change)",
        "step = change",
    )
    yield _QUEUE.bug(
        "a relist overtakes what was missed before it",
        "if self._missed or not self._takes_whole(changes):",
        "if not self._takes_whole(changes):",
    )
    yield _QUEUE.bug(
        "a queue with a bound takes one more",
        "if not self._merges and self._one_by_one() >= self._most:",
        "if not self._merges and self._one_by_one() > self._most:",
    )
    yield _QUEUE.bug(
        "a queue that was merged once is merged for ever",
        "                self._merges = False\n                FREED.note()",
        "                FREED.note()",
    )
    yield _QUEUE.bug(
        "what was told of a walk is told again when a queue is merged",
        "super()._append_progress(_Progress(item.walk, item.at))",
        "super()._append_progress(_Progress(item.walk))",
    )
    yield _QUEUE.bug(
        "what is being told while a queue is merged is told twice",
        "                self._hand_place = self._hand.key\n",
        "                pass\n",
    )
    yield _QUEUE.bug(
        "a relist is a walk beside another of the same keys",
        "return changes.initial or not (self._merges or self._walks)",
        "return changes.initial or not self._merges",
    )
    yield _QUEUE.bug(
        "a merge that fails leaves half a queue",
        "            self._pending, self._walks, self._marks, self._hand_place = before\n",
        "            self._hand_place = before[3]\n",
    )
    yield _HANDLERS.bug(
        "an object that leaves the filter is not told as deleted",
        "return Event(event.gvr, codec, left, was, self.cluster)",
        "return None",
    )
    yield _HANDLERS.bug(
        "a callback begins after the handler was removed",
        "    if not stopped():\n        callback(obj)",
        "    callback(obj)",
        "delivery/test_handlers.py",
        "delivery/test_worker.py",
        "delivery/test_dispatch.py",
    )
    yield _HANDLERS.bug(
        "when_changed tells what did not change",
        "rows(codec.plain(old)) != rows(codec.plain(new))",
        "rows(codec.plain(old)) == rows(codec.plain(new))",
    )
    yield _WORKER.bug(
        "a handler that raises SystemExit hears nothing more",
        "except BaseException as error:  # noqa: BLE001 - SystemExit, too",
        "except Exception as error:  # noqa: BLE001 - SystemExit, too",
        "delivery/test_worker.py",
        "delivery/test_dispatch.py",
    )
    yield _WORKER.bug(
        "a thread that ended is not replaced",
        "                self._queue.leave()",
        "                pass",
        "delivery/test_worker.py",
        "delivery/test_dispatch.py",
    )
    yield _EVENTS.bug(
        "a merged deletion tells an older object than the last",
        "self._now = step.old if last is None else last",
        "self._now = step.old",
    )
    yield _EVENTS.bug(
        "deleted and created again between two looks is the same object",
        "        if type(step) is Step and step.uids_unknown:",
        "        if type(step) is Step and not step.uids_unknown:",
    )
    yield _STREAM.bug(
        "the event in hand counts as not yet taken",
        "max(0, self._queue.backlog - self._given)",
        "self._queue.backlog",
    )


def _resources() -> Iterable[Bug]:
    yield _FOLLOW.bug(
        "a resource moves to the preferred version while its own is served",
        "best = next((each for each in versions if each.gvr in had), versions[0])",
        "best = versions[0]",
    )
    yield _FOLLOW.bug("what cannot be watched is followed", "if each.watchable and any(", "if any(")
    yield _FOLLOW.bug(
        "all informers read their first state at once",
        "free = max(0, AT_ONCE - sum(each.reads for each in followed.values()))",
        "free = len(missing)",
    )
    yield _FOLLOW.bug(
        "a resource is let go before its last object was told as deleted",
        "        if self.informer.status().objects:\n            return False",
        "        if not self.informer.status().objects:\n            return False",
    )
    yield _FOLLOW.bug(
        "the old version is let go before the new one has synced",
        "over = other in followed and followed[other].informer.has_synced()",
        "over = other in followed",
    )
    yield _FOLLOW.bug(
        "a cluster-scoped resource is followed by namespace",
        'options = replace(options, namespaces="")',
        "options = replace(options)",
    )
    yield _FOLLOW.bug(
        "news of a CRD wait for the next look by the clock",
        "        self.next = min(self.next, first)",
        "        self.next = max(self.next, first)",
    )
    yield _FOLLOW.bug(
        "a follower believes an old discovery",
        "        self._discovery.invalidate()",
        "        pass",
    )
    yield _FOLLOW.bug(
        "what could not be followed once is never tried again",
        "        self._tried.clear()",
        "        pass",
    )
    yield _FOLLOW.bug(
        "a closed follower's handler is still told",
        "if self._on_event is None or self._closed:",
        "if self._on_event is None:",
    )
    yield _FACTORY.bug(
        "a follower that is closed takes an informer along that was asked for",
        "if entry.kept or entry.users or self._closed:",
        "if entry.users or self._closed:",
    )
    yield _FACTORY.bug(
        "a stopped informer is given again",
        "return None if entry.leaves or entry.generic.informer.is_stopped() else entry",
        "return None if entry.leaves else entry",
    )
    yield _FACTORY.bug(
        "indexers of a later call are forgotten",
        "if asked.indexers and not made:",
        "if asked.indexers and made:",
    )
    yield _LOOKUP.bug(
        "a resource that came meanwhile is unknown for minutes",
        "catalog = self._catalog(called_at, deadline)",
        "catalog = self._catalog(called_at - KEPT, deadline)",
    )
    yield _LOOKUP.bug(
        "what was invalidated is believed", "kept.epoch == epoch and kept.asked_at", "kept.asked_at"
    )
    yield _CATALOG.bug(
        "a group that cannot be asked has nothing",
        "known.get(each.name, ())",
        "()",
    )
    yield _CATALOG.bug(
        "the last version is the preferred one",
        "preferred.setdefault(each.group_resource, each)",
        "preferred[each.group_resource] = each",
    )
    yield _CATALOG.bug(
        "a name in capitals is not tried as a kind first", "    if name != lower:", "    if False:"
    )
    yield _CATALOG.bug(
        "Kubernetes' own groups with a dot are as good as any",
        'return "." not in group or group in _BUILTIN_GROUPS',
        'return "." not in group',
    )
    yield _CLIENT.bug(
        "discovery gives up at the first 401",
        "    if reply.status == 401:\n        source.reload",
        "    if reply.status == 407:\n        source.reload",
    )
    yield _SELECTORS.bug(
        "!= leaves out objects without the label",
        "return value not in self.values",
        "return value is not None and value not in self.values",
    )
    yield _SELECTORS.bug(
        "an empty label does not exist", "return value is not None\n", "return bool(value)\n"
    )
    yield _SELECTORS.bug(
        "greater is greater or equal", "return number > bound if", "return number >= bound if"
    )
    yield _SELECTORS.bug(
        "a field's != is taken for =",
        "(value_of(each.field) == each.value) == each.equal",
        "value_of(each.field) == each.value",
    )
    yield _SELECTORS.bug(
        "a field's value keeps its backslashes",
        "FieldRequirement(field, _unescape(value), ",
        "FieldRequirement(field, value, ",
    )
    yield _KEYS.bug(
        "a key is at work twice at a time",
        "        if key in self._working:\n            if key not in self._again:",
        "        if key in self._again:\n            if key not in self._again:",
    )
    yield _KEYS.bug(
        "what is added while a key is at work is lost",
        "        self._waiting[key] = self._again[key]",
        "        pass",
    )
    yield _KEYS.bug(
        "the longer of two delays counts", "held is not None and held <= due", "held is not None"
    )
    yield _KEYS.bug(
        "the first retry waits twice as long",
        "min(max(0, failures - 1), ",
        "min(max(0, failures), ",
    )
    yield _KEYS.bug(
        "failures are never forgotten", "        self._failures.pop(key, None)", "        pass"
    )
    yield _WAITING.bug(
        "what happens before the first look is missed",
        "        watch.open()  # before",
        "        pass  # before",
    )
    yield _WAITING.bug(
        "a condition of this generation is outdated",
        "observed < generation",
        "observed <= generation",
    )
    yield _WAITING.bug(
        "a version that was passed by is waited for",
        "return seen == version or versions.older(version, seen)",
        "return seen == version",
    )
    yield _WAITING.bug(
        "a deletion between two looks is missed",
        "if event is not None and event.recreated and met(None):",
        "if event is not None and event.recreated and not met(None):",
    )
    yield _PATHS.bug(
        "two different compound values are one",
        'part.replace("~", "~0").replace("/", "~1")',
        'part.replace("/", "~1")',
    )
    yield _PATHS.bug(
        "an object is twice under one value",
        "return list(dict.fromkeys(texts)) if len(texts) > 1 else texts",
        "return texts",
    )
    yield _COMPARED.bug(
        "a number and a text are never unequal",
        'return operator == "!="',
        "return False",
    )


_ALSO_SIMULATED: Final = (
    "an event behind a newer bookmark is dropped",
    "no look at the server after a lost connection",
    "a changed schema is not listed",
    "a resource that is gone keeps its objects",
    "every relist tells initial events",
    "a relist deletes nothing",
    "a late handler is told each change twice",
    "a resync reaches every handler",
    "a handler has synced before its informer",
    "an update and a deletion merge to nothing",
    "what is being told is merged with what follows",
    "an event that comes shows all that was written before it",
    "what an audit finds is never put right by a list",
    "a list for an audit waits for what is never shown",
)


def _shown() -> Iterable[Bug]:
    yield _KNOWN.bug(
        "a server that is away is asked again at once",
        "self._not_before = time.monotonic() + _AGAIN",
        "self._not_before = 0.0",
    )
    yield _SELECTION.bug(
        "a path with [*] that finds one value gives that value",
        "            return list(found)\n        return [values[0]",
        "            return [each if len(each) != 1 else each[0] for each in found]\n"
        "        return [values[0]",
    )
    yield _SELECTION.bug(
        "rows are sorted, and their keys are not",
        "        keys = [keys[at] for at in places]\n",
        "",
        "frames/test_pandas_frames.py",
    )
    yield _TYPES.bug(
        "an integer past 64 bits is one",
        "not isinstance(value, bool) and -_INT64 <= value < _INT64",
        "not isinstance(value, bool)",
    )
    yield _TYPES.bug(
        "a struct loses the fields that are not declared",
        'if schema.get("x-kubernetes-preserve-unknown-fields") or (properties and others):',
        "if properties and others:",
    )
    yield _ARROW.bug(
        "the bits of nulls are in the order of the text", "in reversed(flags))", "in flags)"
    )
    yield _SQL.bug(
        "a row as a whole has the columns that are named beside it",
        "if tables & last:",
        "if False:",
    )
    yield _HTML.bug("text is not escaped", "return escape(visible(text))", "return visible(text)")
    yield _HTML.bug(
        "the YAML of an object is not escaped",
        'yield f"<pre>{escape(indented)}</pre>"',
        'yield f"<pre>{indented}</pre>"',
    )
    yield _FORMS.bug(
        "what was applied last is shown of a Secret",
        "if isinstance(annotations, dict) and _LAST_APPLIED in annotations:",
        "if False:",
    )


def _shared() -> Iterable[Bug]:
    simulated = "scale/test_simulation.py"
    yield _FENCES.bug(
        "a lease lives on after its time by its own clock",
        "        if self._clock() >= self._until:\n                self._over = True",
        "        if self._clock() >= self._until + 30:\n                self._over = True",
    )
    yield _FENCES.bug(
        "a time that was over is renewed",
        "            if not self.holds():\n                return False\n            self._until",
        "            self._over = False\n            self._until",
    )
    yield _FENCES.bug(
        "a fence of what was lost holds while work goes on",
        "(self._running > 0 and not self._lost)",
        "(self._running > 0)",
    )
    yield _FENCES.bug(
        "work begins on what is let go of",
        "return not self._closed and self._tenure.holds()",
        "return self._tenure.holds()",
    )
    yield _SHARING.bug(
        "a replica acts from when its renewal was answered",
        "until=asked + replica.times.renew_deadline",
        "until=now + replica.times.renew_deadline",
        simulated,
    )
    yield _SHARING.bug(
        "since when a lease stays so begins anew with each look",
        "if before is None or before.lease.version != lease.version:",
        "if True:",
    )
    yield _SHARING.bug(
        "since when a lease stays so goes by its own duration alone",
        "duration = max(own, lease.duration)",
        "duration = lease.duration / 3",
        "scale/test_sharing.py",
        simulated,
    )
    yield _SHARING.bug(
        "a shard is ours though another term was written",
        "(found.version, found.holder, found.term) == (ours.version, replica.holder, ours.term)",
        "found.version",
    )
    yield _SHARING.bug(
        "a taking is no new term",
        "term=max(lease.term, replica.terms.get(shard, 0)) + 1",
        "term=max(lease.term, replica.terms.get(shard, 0), 1)",
    )
    yield _SHARING.bug(
        "terms begin again where a lease was removed",
        "    if not lost:\n        return replica.terms",
        "    if lost or not lost:\n        return replica.terms",
    )
    yield _SHARING.bug(
        "a shard is taken from a replica that lives",
        "free = lease is None or lease.holder not in members or lease.holder == replica.holder",
        "free = True",
        "scale/test_sharing.py",
        simulated,
    )
    yield _SHARING.bug(
        "shards are taken while others divide otherwise",
        "    if replica.strangers:\n",
        "    if False:\n",
    )
    yield _SHARING.bug(
        "a lease is asked to be made again under the same name",
        "return replica if replica.version else replace(replica, unsure=True)",
        "return replica",
    )
    yield _SHARING.bug(
        "a write of a lease that is gone makes it anew",
        "            uid=self.uid,\n",
        "",
        simulated,
    )
    yield _LEASES.bug(
        "a write does not say which lease it is for",
        '        metadata["uid"] = lease.uid\n',
        "",
    )
    yield _LEASES.bug(
        "times are taken that leave no margin",
        "        if not self.margin > 0:\n",
        "        if self.margin < -100:\n",
    )
    yield _ROUNDS.bug(
        "a shard is released while it is worked on",
        "        return not at_work\n",
        "        return True\n",
    )
    yield _ROUNDS.bug(
        "work of an earlier ownership is forgotten",
        "        if not owner.idle:\n            self._lingering.append(owner)\n",
        "",
    )
    yield _ROUNDS.bug(
        "a shard is ours though the answer to its taking was a conflict",
        "                answer = yield Put(lease)\n"
        "                if isinstance(answer, Lease):\n"
        "                    self.replica = sharing.took(self.replica, shard, answer)\n",
        "                answer = yield Put(lease)\n"
        "                if True:\n"
        "                    won = answer if isinstance(answer, Lease) else lease\n"
        "                    self.replica = sharing.took(self.replica, shard, won)\n",
        simulated,
    )
    yield _ROUNDS.bug(
        "a replica whose lease was removed goes on",
        "        if not renewed and self.replica.version and not self._is_among(answer):",
        "        if False:",
    )
    yield _ROUNDS.bug(
        "what is waited for is what is at work after the round",
        "if each.shard != shard) | at_work",
        "if each.shard == -1)",
    )
    yield _ASSIGNMENT.bug(
        "each shard goes to the member that wants it most",
        "        kept = shards\n",
        "        kept = []\n",
    )
    yield _ASKING.bug(
        "a 404 of a proxy says that a lease is gone",
        "if status == 404 and _says_gone(error, path):",
        "if status == 404:",
    )
    yield _ASKING.bug(
        "another replica's lease is removed whatever it says by now",
        '"preconditions": conditions}',
        '"preconditions": {}}',
    )
    yield _ASKING.bug(
        "what the server has refused may be done later",
        "Failure.REFUSED if status in _REFUSALS else Failure.UNKNOWN",
        "Failure.UNKNOWN",
    )
    yield _MEMBERSHIP.bug(
        "a with block of a membership does not end it",
        "    def _sleep(self) -> None:",
        "    def _end_with_block(self) -> None:\n        pass\n\n    def _sleep(self) -> None:",
    )
    yield _MEMBERSHIP.bug(
        "a replica that ends does not wait for its callback",
        'will run out", self._group)\n                return\n',
        'will run out", self._group)\n',
    )
    yield _MEMBERSHIP.bug(
        "a replica sleeps though a shard has come to rest",
        "lambda: self._is_over() or any(each.idle for each in awaited),",
        "self._is_over,",
    )
    yield _SHARDED.bug(
        "initial adds of a shard that comes are dropped",
        "        for handler in self._handlers:\n            made.tell(handler, self._count)\n"
        "        informer.start()\n",
        "        informer.start()\n        informer.wait_synced(5)\n"
        "        for handler in self._handlers:\n"
        '            handler.options["filter"] = lambda obj: False\n'
        "            made.tell(handler, self._count)\n",
    )
    yield _SHARDED.bug(
        "a shard that comes back is told nothing",
        "if owner not in covered and not owner.closed",
        "if owner not in covered and not owner.closed and not self._generations",
    )
    yield _SHARDED.bug(
        "a callback begins on a shard that is given away",
        "            if self.removed or not owner.enter():\n",
        "            owner.enter()\n            if self.removed:\n",
    )
    yield _SHARDED.bug(
        "reads give what is not ours any more",
        "        return owner is not None and owner.holds()\n\n\nGenerations",
        "        return owner is not None\n\n\nGenerations",
    )
    yield _ELECTION.bug(
        "the time of the lease is taken from another's clock",
        "now < candidate.since + (seen.duration or duration)",
        "now < float(seen.version or 0) + (seen.duration or duration)",
    )
    yield _ELECTION.bug(
        "a lead counts from the answer",
        "until = asked + candidate.times.renew_deadline",
        "until = now + candidate.times.renew_deadline",
    )
    yield _ELECTION.bug(
        "a candidate goes on leading what another one has",
        "        if lease.holder == candidate.identity and lease.term >= last_term:\n",
        "        if True:\n",
    )
    yield _ELECTION.bug(
        "a lead is given up in another's name",
        "if seen is None or seen.holder != candidate.identity:",
        "if seen is None:",
    )
    yield _LEADER.bug(
        "a lead is given up while its callback works",
        'will run out", self.name)\n                return\n',
        'will run out", self.name)\n',
    )
    yield _LEADER.bug(
        "a lead whose work has failed is held",
        "            self._failed = owner\n",
        "",
    )
    yield _LEADER.bug(
        "a start while the last thread ends is lost",
        "            self._competes = not self._is_over()\n            return self._competes\n",
        "            return not self._is_over()\n",
    )
    yield _LEADER.bug(
        "a lead is lost for its callback when a request has been answered",
        "            self._changed.wait_for(lambda: not owner.holds(), owner.left)\n",
        "            self._changed.wait_for(lambda: owner.closed)\n",
    )
    yield _RECEIVE.bug(
        "objects of other shards are kept where the server sends all",
        "        if self._shard is not None and not self._shard.owns(text(head[2])):\n",
        "        if False:\n",
    )


def _simulated(bugs: Iterable[Bug]) -> Iterable[Bug]:
    """Planted once more, and the simulation alone objects."""
    for bug in bugs:
        if bug.name in _ALSO_SIMULATED:
            name = f"{bug.name} (simulated)"
            yield replace(bug, name=name, tests=("simulation/test_simulation.py",))


_ONCE = (*_protocol(), *_store(), *_delivery(), *_resources(), *_shown(), *_shared())
BUGS: Final[tuple[Bug, ...]] = (*_ONCE, *_simulated(_ONCE))
