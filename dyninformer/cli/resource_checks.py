"""The doctor's checks of one resource: is it there, and can it be listed and watched, and how."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from shlex import quote
from typing import Final, NamedTuple
from urllib.parse import quote as quote_path

import msgspec

from dyninformer.cli.findings import Finding, Level, denied, fail, failed_by, message_of, ok, warn
from dyninformer.discovery import Discovery, ResolvedResource
from dyninformer.display.text import visible
from dyninformer.errors import (
    AmbiguousResourceError,
    DynInformerError,
    StaleCacheError,
    UnauthorizedError,
    UnknownResourceError,
    UnreachableError,
)
from dyninformer.jsonpath.json_bytes import MOST_VALUES, too_many_values
from dyninformer.printable import counted
from dyninformer.resource import GroupVersionResource
from dyninformer.transport.requests import SilentError
from dyninformer.types import Object
from dyninformer.watching.client import Source
from dyninformer.watching.crds import CRDS
from dyninformer.watching.cutting import BrokenFrameError, ItemCutter, LineCutter, broken, cut_event
from dyninformer.watching.decode import MARK, status_of
from dyninformer.watching.sockets import SocketReply
from dyninformer.watching.states import AskRevision, Scope, StreamState, Want, WatchFrom
from dyninformer.watching.status import InformerTrouble
from dyninformer.watching.wants import request_for

_VERBS: Final = ("list", "watch")
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_SLOW_SECONDS: Final = 5.0
_NO_STREAMING_LIST: Final = (400, 405, 422)
_BUFFERED: Final = (
    "Something on the way to the server may hold answers back: switch off its response buffering."
)
_PAGES: Final = (
    "Nothing: lists come in pages of 500. From Kubernetes 1.34 on (feature gate WatchList) a "
    "streaming list costs the server less."
)
_GRACE_SECONDS: Final = 60  # more than the check takes: the server does not end it first
_AFTER_A_CUT: Final = (
    "dyninformer watches again from the last version at once, and loses no event. Raise the idle "
    "time of the proxy or load balancer on the way above a minute, in which a bookmark comes."
)
_REFUSALS: Final = (
    InformerTrouble.UNREACHABLE,
    InformerTrouble.UNAUTHORIZED,
    InformerTrouble.FORBIDDEN,
)
_SHOWN_KEYS: Final = 5
_LOST: Final = (
    "An event was lost on its way: restart the API server that has lost it, which fills its watch "
    "cache anew, and look at the proxies before it. Programs find and mend it with audit=3600."
)
_STALE: Final = (
    "Changes arrive late, or a quiet watch does not show that it is current: programs that call "
    "wait_fresh or require_fresh have to wait. See what the other checks say of bookmarks and cuts."
)
# Labels that no object has: the state of a large collection need not be sent for a probe.
_NO_OBJECT: Final = "dyninformer.doctor/probe=nothing"
_STREAM_SECONDS: Final = 5  # for the state of nothing, and its end mark


@dataclass(frozen=True, slots=True)
class Found:
    """A resource, and where it may be listed and watched, as far as the server says."""

    resource: ResolvedResource
    spaces: list[str]
    allowed: dict[str, set[str]]
    """By verb, the namespaces in which it is not refused."""

    def may(self, verb: str) -> list[str]:
        """The namespaces to try."""
        return [space for space in self.spaces if space in self.allowed[verb]]


def broken_groups(discovery: Discovery) -> Iterator[Finding]:
    """API groups that do not answer: kubectl and others stumble over them, too."""
    try:
        problems = discovery.problems()
    except (UnreachableError, UnauthorizedError) as error:
        yield failed_by("discovery", error)
        return
    for name, problem in problems.items():
        group, _, version = name.rpartition("/")
        yield warn(
            "discovery",
            f"the API group {name} is broken: {problem}",
            f"kubectl get apiservice {version}.{group} says which server should answer for it.",
        )


class ResourceChecks:
    """The checks of one resource that its name and rights allow; ``found`` is what is there."""

    def __init__(self, source: Source, discovery: Discovery, user: str, patience: float) -> None:
        self._source = source
        self._discovery = discovery
        self._user = user
        self._patience = patience
        self.found: Found | None = None

    def run(self, spelling: str, spaces: list[str]) -> Iterator[Finding]:
        """All of them; without ``found`` afterwards there is nothing to be listed."""
        try:
            resource = self._discovery.resolve(spelling)
        except (UnknownResourceError, AmbiguousResourceError) as error:
            fix = "Spell it as `dyninformer resources` does, or install its CRD."
            yield fail("resource", str(error), fix)
            yield from self._unserved(spelling)
            return
        except (UnreachableError, UnauthorizedError) as error:
            yield failed_by("resource", error)
            return
        gvr = resource.gvr
        missing = [verb for verb in _VERBS if verb not in resource.verbs]
        scope = "namespaced" if resource.namespaced else "cluster-scoped"
        if missing:
            fix = f"Informers cannot watch it; it offers {', '.join(resource.verbs) or 'nothing'}."
            yield fail("resource", f"{gvr} does not offer {' and '.join(missing)}", fix)
            return
        yield ok("resource", f"{visible(spelling)} is {gvr}, kind {resource.kind}, {scope}")
        if not resource.namespaced:
            spaces = [""]
        yield from self._definition(gvr)
        allowed: dict[str, set[str]] = {verb: set() for verb in _VERBS}
        for space in spaces:
            yield from self._namespace(space)
            yield from self._access(gvr, space, allowed)
        if "." in gvr.group:
            yield from self._right_to_watch_crds()
        self.found = Found(resource, spaces, allowed)

    def _definition(self, gvr: GroupVersionResource) -> Iterator[Finding]:
        """Whether a CRD is established, and which versions it serves."""
        try:
            reply = self._source.get_json(
                f"{CRDS.path()}/{gvr.group_resource}", deadline=self._patience
            )
        except UnreachableError as error:
            yield failed_by("CRD", error)
            return
        if reply.status != 200 or not isinstance(reply.body, dict):
            return  # no CRD's, or not for this user to see
        yield _definition_finding(gvr, reply.body)

    def _unserved(self, spelling: str) -> Iterator[Finding]:
        """Why the server does not have a resource: its CRD may be there, and not served."""
        try:
            reply = self._source.get_json(CRDS.path(), deadline=self._patience)
        except UnreachableError:
            return  # the finding before this has said it already
        items = _dict(reply.body).get("items") if reply.status == 200 else None
        for crd in map(_dict, _list(items)):
            spec = _dict(crd.get("spec"))
            names, versions = _dict(spec.get("names")), _list(spec.get("versions"))
            if _crd_names(names) & _words(spelling) and versions:
                version = str(_dict(versions[0]).get("name"))
                try:
                    gvr = GroupVersionResource(
                        str(spec.get("group")), version, str(names.get("plural"))
                    )
                except ValueError:
                    continue  # it says nothing that could be served
                finding = _definition_finding(gvr, crd)
                if finding.level is Level.FAIL:
                    yield finding

    def _namespace(self, space: str) -> Iterator[Finding]:
        """Nothing is ever seen in a namespace that is not there, and nothing fails either."""
        if not space:
            return
        try:
            reply = self._source.get_json(
                f"/api/v1/namespaces/{quote_path(space, safe='')}", deadline=self._patience
            )
        except UnreachableError as error:
            yield failed_by("namespace", error)
            return
        if reply.status == 404:
            fix = "Check its spelling with `dyninformer get namespaces`; -A looks into all."
            yield warn("namespace", f"there is no namespace {visible(space)} (yet)", fix)

    def _access(
        self, gvr: GroupVersionResource, space: str, allowed: dict[str, set[str]]
    ) -> Iterator[Finding]:
        where = f"in namespace {visible(space)}" if space else "in the whole cluster"
        refused: list[str] = []
        for verb in _VERBS:
            allows = self._may(gvr, verb, space)
            if isinstance(allows, Finding):
                for each in _VERBS:
                    allowed[each].add(space)  # the requests themselves will tell
                yield allows
                return
            if allows:
                allowed[verb].add(space)
            else:
                refused.append(verb)
        if not refused:
            yield ok("access", f"list and watch are allowed {where}")
            return
        yield fail(
            "access",
            f"{visible(self._user) or 'this user'} may not {' or '.join(refused)} "
            f"{gvr.group_resource} {where}",
            _grant(gvr, space, self._user),
            refused=True,
        )

    def _may(self, gvr: GroupVersionResource, verb: str, space: str) -> bool | Finding:
        """What a SelfSubjectAccessReview says; a finding if it says nothing."""
        attributes = {**asdict(gvr), "verb": verb, "namespace": space}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        try:
            reply = self._source.post_json(_REVIEWS, body, self._patience)
        except UnreachableError as error:
            return failed_by("access", error)
        status = reply.body.get("status") if isinstance(reply.body, dict) else None
        if reply.status not in (200, 201) or not isinstance(status, dict):
            what = "what this user may do cannot be asked"
            finding = denied("access", what, reply.status, message_of(reply))
            return warn("access", finding.found, "Whether it may list and watch is seen below.")
        return status.get("allowed") is True

    def _right_to_watch_crds(self) -> Iterator[Finding]:
        missing = [verb for verb in _VERBS if self._may(CRDS, verb, "") is False]
        if not missing:
            return
        yield warn(
            "access to CRDs",
            f"no right to {' and '.join(missing)} {CRDS.group_resource}: when a CRD comes, goes "
            "or changes, that is seen later, and costs another list",
            _grant(CRDS, "", self._user),
        )


def _definition_finding(gvr: GroupVersionResource, crd: Object) -> Finding:
    spec, status = _dict(crd.get("spec")), _dict(crd.get("status"))
    conditions = {
        str(each.get("type")): each for each in map(_dict, _list(status.get("conditions")))
    }
    name = gvr.group_resource
    established = conditions.get("Established", {})
    if established.get("status") != "True":
        others = [established, conditions.get("NamesAccepted", {})]
        messages = [
            str(each.get("message") or "") for each in others if each.get("status") != "True"
        ]
        why = next(filter(None, messages), "no reason is given")
        fix = f"kubectl describe crd {name}; names that another CRD has are refused."
        return fail("CRD", f"{name} is not established: {visible(why)}", fix)
    versions = [_dict(each) for each in _list(spec.get("versions"))]
    served = [str(each.get("name")) for each in versions if each.get("served")]
    stored = [str(each) for each in _list(status.get("storedVersions"))]
    listed = f"serves {', '.join(served)}, stores {', '.join(stored)}"
    if gvr.version not in served:
        fix = f"Ask for {served[0] if served else 'another version'}, or have it served."
        return fail("CRD", f"{name} does not serve {gvr.version}: it {listed}", fix)
    mine = next(each for each in versions if each.get("name") == gvr.version)
    if mine.get("deprecated"):
        fix = (
            f"Move to a newer version: {', '.join(each for each in served if each != gvr.version)}"
        )
        return warn("CRD", f"{gvr} is deprecated; {name} {listed}", fix)
    return ok("CRD", f"established; {listed}")


def _crd_names(names: Object) -> set[str]:
    """All names that a CRD gives its resource."""
    found = [names.get("plural"), names.get("singular"), names.get("kind")]
    return {str(each).lower() for each in [*found, *_list(names.get("shortNames"))] if each}


def _words(spelling: str) -> set[str]:
    """What in a spelling may be the name: ``cert``, ``cert.group``, ``group/version/cert``."""
    return {spelling.lower().rpartition("/")[2].partition(".")[0]}


def _grant(gvr: GroupVersionResource, space: str, user: str) -> str:
    """The commands with which an administrator gives the right."""
    name = f"watch-{gvr.resource}"
    kind, inside = ("role", f" -n {space}") if space else ("clusterrole", "")
    if user.startswith(_SERVICE_ACCOUNT):
        subject = f"--serviceaccount={user.removeprefix(_SERVICE_ACCOUNT)}"
    else:
        subject = f"--user={quote(visible(user))}" if user else "--user=NAME"
    return (
        f"kubectl create {kind} {name}{inside} --verb=get,list,watch "
        f"--resource={gvr.group_resource} && "
        f"kubectl create {kind}binding {name}{inside} --{kind}={name} {subject}"
    )


def _dict(found: object) -> Object:
    return found if isinstance(found, dict) else {}


def _list(found: object) -> list[object]:
    return found if isinstance(found, list) else []


class CollectionChecks:
    """The checks of one collection; ``version`` is that of its list, to watch from."""

    def __init__(self, probes: Probes, namespace: str) -> None:
        self._probes = probes
        self._where = f" in namespace {visible(namespace)}" if namespace else ""
        self.version = ""

    def listing(self) -> Iterator[Finding]:
        """A list of one item."""
        try:
            found = self._probes.list_one()
        except UnreachableError as error:
            yield failed_by("list", error)
            return
        if isinstance(found, Refusal):
            yield denied("list", f"it cannot be listed{self._where}", *found)
            return
        self.version = found.version
        size = f"{_number(found)}{self._where}; {found.size:,} bytes in {found.seconds:.2f} s"
        if found.seconds > _SLOW_SECONDS:
            fix = "Look at the load of the API server and at the network on the way to it."
            yield warn("list", f"slow: {size}", fix)
        else:
            yield ok("list", size)

    def watching(self) -> Iterator[Finding]:
        """A watch from the list's version, as informers go on for the rest of their lives."""
        try:
            with self._probes.watched(self.version, 1) as reply:
                if isinstance(reply, Refusal):
                    yield denied("watch", f"it cannot be watched{self._where}", *reply)
                    return
        except UnreachableError as error:
            yield failed_by("watch", error)
            return
        yield ok("watch", f"accepted{self._where}")
        yield from self._streaming_list()

    def _streaming_list(self) -> Iterator[Finding]:
        try:
            with self._probes.streamed_state() as lines:
                if isinstance(lines, Refusal):
                    if lines.status in _NO_STREAMING_LIST:
                        found = f"not offered ({lines.status}); ordinary lists are used"
                        yield warn("streaming list", found, _PAGES)
                    else:
                        yield denied("streaming list", "it is refused", *lines)
                elif any(line.is_mark for line in lines):
                    yield ok("streaming list", "offered; its end mark came")
                    yield ok("bookmarks", "they come")
                    return
                else:
                    found = "its end mark did not come; ordinary lists are used"
                    yield warn("streaming list", found, _PAGES)
        except (UnreachableError, BrokenFrameError) as error:
            yield warn("streaming list", str(error), _BUFFERED)
        yield warn(
            "bookmarks",
            "not seen yet: servers send them once a minute, and only if there is news",
            "See whether they come with --watch-for 150. Without bookmarks, a watch that has "
            "been quiet for long must list again after an interruption.",
        )


def _number(found: Listed) -> str:
    if found.remaining is not None:
        return counted(found.items + found.remaining, "object")
    return counted(found.items, "object")


def idle_watch(probes: Probes, version: str, seconds: float) -> Iterator[Finding]:
    """Hold a watch for that time, and say how it went."""
    began = time.monotonic()
    lines: Counter[str] = Counter()
    try:
        with probes.watched(version, int(seconds) + _GRACE_SECONDS) as reply:
            if isinstance(reply, Refusal):
                yield denied("idle watch", "it cannot be watched", *reply)
                return
            end = _end_of(reply, began + seconds, lines)
    except (UnreachableError, BrokenFrameError) as error:
        end = str(error)
    after = time.monotonic() - began
    bookmarks = lines["BOOKMARK"]
    events = counted(lines.total() - bookmarks, "event")
    seen = f"{events} and {counted(bookmarks, 'bookmark')}"
    if not end:
        yield ok("idle watch", f"held for {after:.1f} s, with {seen}")
    else:
        yield warn("idle watch", f"cut after {after:.1f} s, with {seen}: {end}", _AFTER_A_CUT)


def freshness(
    source: Source, gvr: GroupVersionResource, namespace: str, *, patience: float
) -> Iterator[Finding]:
    """Hold a cache of nothing, and see whether it can be known to be as the server has it.

    The source is used up.
    """
    from dyninformer.factory import DynamicSharedInformerFactory  # noqa: PLC0415 - it is heavy

    with DynamicSharedInformerFactory(source) as factory:
        informer = factory.for_resource(
            gvr, namespaces=namespace, label_selector=_NO_OBJECT, watch_list=False
        ).informer
        try:
            factory.sync(patience)
            began = time.monotonic()
            informer.wait_fresh(timeout=patience)
        except StaleCacheError as error:
            yield warn("freshness", str(error), _STALE)
        except DynInformerError as error:
            yield failed_by("freshness", error, refused=informer.status().trouble in _REFUSALS)
        else:
            took = time.monotonic() - began
            yield ok("freshness", f"a cache is known to be current {took:.1f} s after it was asked")


def audited(
    source: Source, gvr: GroupVersionResource, namespace: str, *, patience: float, seconds: float
) -> Iterator[Finding]:
    """Hold what an informer holds, for that time, and compare it with what the server has.

    The source is used up.
    """
    from dyninformer.factory import DynamicSharedInformerFactory  # noqa: PLC0415 - it is heavy

    where = f" in namespace {visible(namespace)}" if namespace else ""
    with DynamicSharedInformerFactory(source) as factory:
        informer = factory.for_resource(gvr, namespaces=namespace).informer
        try:
            factory.sync(patience)
            factory.wait(seconds)
            report = informer.audit()
        except DynInformerError as error:
            refused = informer.status().trouble in _REFUSALS
            yield failed_by("audit", error, refused=refused)
            return
    if not report.differs:
        objects = "1 object is" if report.compared == 1 else f"{report.compared:,} objects are"
        etcd = f"{report.from_etcd:,} of them compared with etcd itself"
        yield ok("audit", f"{objects} as the server has them{where}; {etcd}")
        return
    keys = [*report.updated, *report.deleted, *report.added, *report.unresolved]
    shown = ", ".join(keys[:_SHOWN_KEYS]) + (", ..." if len(keys) > _SHOWN_KEYS else "")
    yield fail(
        "audit",
        f"of {report.compared:,} objects{where} {len(keys):,} were not as the server has them, "
        f"and no event told so: {report.summary} ({visible(shown)})",
        _LOST,
    )


def _end_of(reply: SocketReply, until: float, lines: Counter[str]) -> str:
    """What ended it before its time; "" if nothing did."""
    cutter = LineCutter()
    reply.allow_silence(max(0.01, until - time.monotonic()))
    try:
        for chunk in reply.chunks():
            for line in cutter.feed(chunk):
                lines[_read_line(line).type] += 1
            left = until - time.monotonic()
            if left <= 0:
                return ""
            reply.allow_silence(left)
    except SilentError:
        return ""  # nothing happened to the end
    return "the stream ended cleanly, before its time"


class WatchLine(NamedTuple):
    """A line of a watch."""

    type: str
    object: Object

    @property
    def is_mark(self) -> bool:
        """It ends the initial events."""
        annotations = _dict(_dict(self.object.get("metadata")).get("annotations"))
        return self.type == "BOOKMARK" and annotations.get(MARK) == "true"


class Refusal(NamedTuple):
    """An answer other than 200."""

    status: int
    message: str


class Listed(NamedTuple):
    """A list of one item."""

    seconds: float
    size: int
    items: int
    remaining: int | None
    version: str


class Probes:
    """Asks a server for one collection. UnreachableError if no answer comes."""

    def __init__(
        self, source: Source, gvr: GroupVersionResource, namespace: str, patience: float
    ) -> None:
        self._source = source
        self._patience = patience
        self._whole = Scope(gvr=gvr, namespace=namespace)
        self._empty = Scope(gvr=gvr, namespace=namespace, label_selector=_NO_OBJECT)

    def list_one(self) -> Listed | Refusal:
        """A page of one item."""
        began = time.monotonic()
        with self._request(self._whole, AskRevision()) as reply:
            if isinstance(reply, Refusal):
                return reply
            cutter, size, items = ItemCutter(), 0, 0
            try:
                for chunk in reply.chunks():
                    size += len(chunk)
                    items += len(cutter.feed(chunk))
                meta = cutter.finish()
            except BrokenFrameError as error:
                return Refusal(200, f"the answer is not a list: {error}")
        seconds = time.monotonic() - began
        if not meta.kind.endswith("List"):
            return Refusal(200, "the answer is not a list")
        return Listed(seconds, size, items, meta.remaining, meta.version)

    @contextmanager
    def streamed_state(self) -> Iterator[Iterator[WatchLine] | Refusal]:
        """The lines of a streaming list of nothing."""
        want = StreamState(_STREAM_SECONDS)
        with self._request(self._empty, want) as reply:
            if isinstance(reply, Refusal):
                yield reply
                return
            reply.allow_silence(_STREAM_SECONDS + self._patience)  # it ends by itself before
            yield _lines(reply)

    @contextmanager
    def watched(self, version: str, seconds: int) -> Iterator[SocketReply | Refusal]:
        """A watch from a version, for that time."""
        want = WatchFrom(version, seconds)
        with self._request(self._whole, want) as reply:
            yield reply

    @contextmanager
    def _request(self, scope: Scope, want: Want) -> Iterator[SocketReply | Refusal]:
        reply = self._source.list(replace(request_for(scope, want), deadline=self._patience))
        try:
            if reply.status == 200:
                yield reply
            else:
                status = status_of(reply.body())
                yield Refusal(reply.status, status.message if status is not None else "")
        finally:
            reply.close()


def _lines(reply: SocketReply) -> Iterator[WatchLine]:
    """The lines as they come. UnreachableError if none comes for long; BrokenFrameError."""
    cutter = LineCutter()
    for chunk in reply.chunks():
        for line in cutter.feed(chunk):
            yield _read_line(line)


def _read_line(line: bytes) -> WatchLine:
    """A line of a watch; anything else than an object counts as an empty one."""
    kind, data = cut_event(line)
    if too_many_values(data):
        raise broken("an event", line, f"it holds more than {MOST_VALUES:,} values")
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise broken("an event", line, str(error)) from None
    return WatchLine(kind, found if isinstance(found, dict) else {})
