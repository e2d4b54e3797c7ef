"""Waiting until an informer's cache has an object as it should be, or a version, or is fresh."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from dyninformer.checked import check_function, checked_name, checked_number, checked_text
from dyninformer.delivery.key_watch import KeyWatch
from dyninformer.errors import JSONPathError, StaleCacheError, StoppedError, WaitTimeoutError
from dyninformer.jsonpath import JSONPath
from dyninformer.jsonpath.comparisons import Comparison, PathCondition, divided
from dyninformer.lister import KeyCheck, check_paths
from dyninformer.resource import of_secrets
from dyninformer.store import versions
from dyninformer.threads import Deadline, Pause, Waiting, since_boot
from dyninformer.types import Object

if TYPE_CHECKING:
    from dyninformer.informer import Reflectors, SharedIndexInformer

Condition: TypeAlias = str | Callable[[Object], bool]
Written: TypeAlias = "str | Mapping[str, Any] | HasDict"


class HasDict(Protocol):
    """What the official client gives back: a ResourceInstance, or a typed model. Not for import."""

    def to_dict(self) -> Any:
        """It as a dict."""


def until_met(
    informer: SharedIndexInformer,
    watch: KeyWatch,
    condition: Condition,
    timeout: float | None,
) -> Waiting[Object]:
    """See `SharedIndexInformer.wait_for`. ``watch`` is of the object's key, and not yet open."""
    met = met_when(condition, secret=of_secrets(informer.gvr))
    deadline = Deadline(timeout)
    last: Object | None = None
    try:
        watch.open()  # before the first look, so that nothing is missed in between

        def answered() -> None:
            informer.reflectors.ring()
            watch.bell.ring()

        def news_or_due() -> bool:
            return watch.has_news() or check.is_due()

        check = KeyCheck(informer.key_rules, watch.key, _HOW, answered)
        yield from _until_synced(informer, deadline, check, f"waiting for {watch.key}")
        yield Pause(watch.bell, lambda: not check.asking, deadline)
        while True:
            if not check.known:
                check.look()
            event = watch.take()
            obj = informer.store.get_by_key(watch.key)
            if met(obj):
                return obj if obj is not None else last or {}
            if event is not None and event.recreated and met(None):
                return event.old or {}  # deleted, and there is another one by now
            last = obj or last
            check_paths([informer.lister.held], paths_of(met))
            if check.known:
                yield Pause(watch.bell, watch.has_news, deadline)
            else:
                yield Pause(watch.bell, news_or_due, check.before(deadline))
            if watch.closed or (deadline.over and not watch.has_news()):
                informer.key_rules.check(watch.key, _HOW)
                raise _not_met(informer, watch.key, condition, last, met.found(obj))
    finally:
        watch.close()


def until_seen(
    informer: SharedIndexInformer,
    reflectors: Reflectors,
    written: Written,
    timeout: float | None,
    namespace: str | None,
) -> Waiting[None]:
    """See `SharedIndexInformer.wait_for_version`."""
    version, of = (written, None) if isinstance(written, str) else _version_of(written)
    checked_name("a version", version, "a resourceVersion")
    if namespace is not None:
        checked_text("namespace", namespace, "a name")
    where = of if namespace is None else namespace

    def has_seen() -> bool:
        seen = reflectors.last_version(where)
        return seen == version or versions.older(version, seen)

    yield reflectors.pause(lambda: informer.is_stopped() or has_seen(), Deadline(timeout))
    if has_seen():
        return
    if informer.is_stopped():
        raise StoppedError(f"the informer of {informer.gvr} stopped while it was waited for")
    at = reflectors.last_version(where) or "none yet"
    advice = ""
    if where is None and len(informer.options.scopes) > 1:
        advice = (
            "It is as far as the slowest of its namespaces: pass namespace=, or what the write "
            "returned, to wait for one."
        )
    inside = f" in namespace {where}" if where else ""
    message = (
        f"the cache of {informer.gvr}{inside} has not seen version {version} in {timeout} s: "
        f"it is at {at}. {advice} {informer.status().reason}"
    )
    raise WaitTimeoutError(" ".join(message.split()), None)


def until_fresh(
    informers: Iterable[SharedIndexInformer], max_age: float, timeout: float | None
) -> Waiting[None]:
    """See `SharedIndexInformer.wait_fresh`; of several, they are asked for together."""
    if not checked_number("max_age", max_age, "seconds, 0 for now") >= 0:
        raise ValueError(f"max_age is {max_age}: give seconds, 0 for now")
    since, deadline = since_boot() - max_age, Deadline(timeout)
    stale = list(informers)
    while stale := [each for each in stale if not each.reflectors.is_fresh(since)]:
        stopped = next((each for each in stale if each.is_stopped()), None)
        if stopped is not None:
            raise StoppedError(f"the informer of {stopped.gvr} has stopped: its cache grows old")
        if deadline.over:
            raise _too_old(stale, max_age, since)
        for each in stale:
            each.reflectors.ask_if_fresh(since)
        # One after the other, and none for so long that the others are not asked for again.
        first = stale.pop(0)
        left = deadline.left
        again = Deadline(_ASK_AGAIN if left is None else min(left, _ASK_AGAIN))
        yield first.reflectors.pause(partial(_is_decided, first, since), again)
        stale.append(first)


def _is_decided(informer: SharedIndexInformer, since: float) -> bool:
    return informer.is_stopped() or informer.reflectors.is_fresh(since)


_ASK_AGAIN: Final = 0.5  # seconds after which it is looked at whether the server can be asked again


def _too_old(stale: Sequence[SharedIndexInformer], max_age: float, since: float) -> StaleCacheError:
    """What to raise: of each cache its age, and why nothing has been known since."""
    status = {each.gvr: each.status() for each in stale}
    lines = []
    for each in stale:
        found = status[each.gvr]
        known, ago = "never", ""
        age = each.reflectors.age
        if age is not None:
            known, ago = "last", f" {age:.1f} s ago"
        state = "not started" if not each.is_started() else found.state
        why = found.reason or each.reflectors.doubt(since) or f"it is {state}"
        lines.append(f"{each.gvr} was {known} known to be as the server has it{ago}: {why}")
    wanted = f"not more than {max_age:g} s old" if max_age else "as the server has it now"
    if len(lines) == 1:
        return StaleCacheError(f"nothing shows that the cache is {wanted}: {lines[0]}", status)
    head = f"nothing shows that {len(lines)} caches are {wanted}:"
    return StaleCacheError("\n  ".join([head, *sorted(lines)]), status)


def _version_of(written: object) -> tuple[str, str]:
    """The resourceVersion and the namespace of what a write returned."""
    as_dict = getattr(written, "to_dict", None)  # the official client's, of either kind
    found = as_dict() if callable(as_dict) else written
    metadata = found.get("metadata") if isinstance(found, Mapping) else None
    if isinstance(metadata, Mapping):
        # A typed model has Python's names for the fields.
        version = metadata.get("resourceVersion") or metadata.get("resource_version")
        if isinstance(version, str):
            return version, metadata.get("namespace") or ""
    raise ValueError(
        "what wait_for_version waits for is the object that a write returned, or its "
        f"resourceVersion; a {type(written).__name__} without metadata.resourceVersion is neither"
    )


def _until_synced(
    informer: SharedIndexInformer, deadline: Deadline, check: KeyCheck, what: str
) -> Waiting[None]:
    reflectors = informer.reflectors

    def over() -> bool:
        return reflectors.synced or reflectors.stopped

    while True:
        yield reflectors.pause(lambda: over() or check.is_due(), check.before(deadline))
        check.look(fresh=reflectors.synced)  # its CRD may be new
        if reflectors.synced:
            return
        if reflectors.stopped:
            raise StoppedError(f"{what}: the informer of {informer.gvr} has stopped")
        if deadline.over:
            break
    status = informer.status()
    raise WaitTimeoutError(
        f"{what}: the cache of {informer.gvr} did not sync in time. "
        f"{status.reason or f'It is {status.state}.'}",
        None,
    )


_HOW: Final = "wait_for(..., name={name!r}, namespace=...), or name='namespace/{name}'"


def _not_met(
    informer: SharedIndexInformer, key: str, condition: Condition, last: Object | None, found: str
) -> Exception:
    if informer.is_stopped():
        return StoppedError(f"the informer of {informer.gvr} stopped while {key} was waited for")
    wanted = condition if isinstance(condition, str) else "the condition"
    return WaitTimeoutError(f"{informer.gvr} {key}: {wanted} was not met in time; {found}", last)


_SHOWN = 200  # characters of a value in a message


class Met(Protocol):
    """Whether the wait is over, given the object as it is, or None if there is none."""

    def __call__(self, obj: Object | None, /) -> bool:
        """True if it is."""

    def found(self, obj: Object | None, /) -> str:
        """What there is instead of what is wanted, for a message."""


def met_when(condition: Condition, *, secret: bool = False) -> Met:
    """The test that a condition stands for; on Secrets, also where these do not say so.

    >>> ready = met_when("condition=Ready")
    >>> ready({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    True
    >>> ready.found({"status": {}})
    'it has no condition Ready'
    >>> met_when("jsonpath={.status.replicas}>=3")({"status": {"replicas": 5}})
    True
    >>> met_when("delete")(None)
    True
    """
    if callable(condition):
        check_function("a condition", condition, "a function of one object, or text")
        return _Function(condition)
    checked_text("a condition", condition, "text such as 'condition=Ready', or a function")
    kind, equals, rest = condition.partition("=")
    if kind == "delete" and not equals:
        return _Presence(wanted=False)
    if kind == "create" and not equals:
        return _Presence(wanted=True)
    if kind == "condition" and rest:
        name, _, value = rest.partition("=")
        return _StatusCondition(name, value or "True")
    if kind == "jsonpath" and rest:
        compares = divided(rest)[1] not in ("", "=")
        return _Path(Comparison(rest) if compares else PathCondition(rest), secret=secret)
    raise ValueError(
        f"{condition!r} is nothing to wait for: expected 'delete', 'create', 'condition=Ready', "
        "'condition=Ready=False', 'jsonpath={.status.phase}=Running', "
        "'jsonpath={.status.replicas}>=3' (also !=, <, <=, >), or a function of the object"
    )


def paths_of(met: Met) -> Sequence[JSONPath]:
    """Return the path that a condition looks at; none for other conditions."""
    return [met.path] if isinstance(met, _Path) else []


class _Function:
    def __init__(self, function: Callable[[Object], bool]) -> None:
        self._function = function

    def __call__(self, obj: Object | None) -> bool:
        return obj is not None and bool(self._function(obj))

    def found(self, obj: Object | None) -> str:
        return "it does not meet the condition" if obj is not None else _NO_OBJECT


class _Presence:
    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted

    def __call__(self, obj: Object | None) -> bool:
        return (obj is not None) == self._wanted

    def found(self, obj: Object | None) -> str:
        return "it is still there" if obj is not None else _NO_OBJECT


class _Path:
    """A path that does not fit this object yet is a condition that is not met yet."""

    def __init__(self, condition: PathCondition | Comparison, *, secret: bool) -> None:
        self.path = condition.path
        self._condition = condition
        self._secret = secret

    def __call__(self, obj: Object | None) -> bool:
        try:
            return obj is not None and self._condition.met(obj)
        except JSONPathError:
            return False

    def found(self, obj: Object | None) -> str:
        if obj is None:
            return _NO_OBJECT
        path = self.path
        try:
            values = path.values(obj)
        except JSONPathError as error:
            return str(error)
        if not values:
            return f"{path.expression} finds nothing"
        if self._secret or obj.get("kind") == "Secret":
            return f"{path.expression} is another value, which is a Secret's and not shown"
        shown = ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
        return f"{path.expression} is {_shortened(shown)}"


class _StatusCondition:
    """One of ``status.conditions``, compared as kubectl does: by any case, and not if outdated."""

    def __init__(self, name: str, value: str) -> None:
        self._name = name
        self._value = value.lower()

    def __call__(self, obj: Object | None) -> bool:
        current = _named_condition(obj, self._name)
        if current is None or _outdated(obj, current):
            return False
        return str(current.get("status")).lower() == self._value

    def found(self, obj: Object | None) -> str:
        if obj is None:
            return _NO_OBJECT
        current = _named_condition(obj, self._name)
        if current is None:
            return f"it has no condition {self._name}"
        why = [str(current[name]) for name in ("reason", "message") if current.get(name)]
        told = f"condition {self._name} is {': '.join([str(current.get('status')), *why])}"
        if _outdated(obj, current):
            told += ", but says so of an older generation"
        return _shortened(told)


_NO_OBJECT = "there is no such object"


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _named_condition(obj: Object | None, name: str) -> Object | None:
    """The condition of that name."""
    status = obj.get("status") if obj is not None else None
    conditions = status.get("conditions") if isinstance(status, dict) else None
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, dict) and str(each.get("type")).lower() == name.lower():
            return each
    return None


def _outdated(obj: Object | None, current: Object) -> bool:
    """The object has changed since a controller last looked at it."""
    if obj is None:
        return False
    generation = _whole(obj.get("metadata"), "generation")
    observed = _whole(current, "observedGeneration")
    if observed is None:
        observed = _whole(obj.get("status"), "observedGeneration")
    return observed is not None and generation is not None and observed < generation


def _whole(holder: object, name: str) -> int | None:
    found = holder.get(name) if isinstance(holder, dict) else None
    return found if isinstance(found, int) else None
