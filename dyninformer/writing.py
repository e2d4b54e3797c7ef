"""Writes of single objects on the official client, which the cache can be awaited for."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar
from urllib.parse import quote

from dyninformer.checked import checked_flag, checked_name, checked_text
from dyninformer.errors import (
    ConflictError,
    DynInformerError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    StaleCacheError,
    StoppedError,
    UnauthorizedWriteError,
    UnknownResourceError,
    UnreachableError,
    WaitTimeoutError,
    WriteError,
)
from dyninformer.resource import GroupVersionResource, of_secrets
from dyninformer.selectors import FieldSelector, LabelSelector
from dyninformer.threads import Deadline, Waiting
from dyninformer.transport.failures import unanswered
from dyninformer.transport.server_warnings import log_warnings
from dyninformer.types import Key, Object

if TYPE_CHECKING:
    from dyninformer.informer import SharedIndexInformer

Patch: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
Wait: TypeAlias = bool | float
W = TypeVar("W")
"""What a write gives: the object, or what is awaited for it."""
Query: TypeAlias = tuple[tuple[str, str], ...]

FIELD_MANAGER: Final = "dyninformer"
_PATIENCE: Final = 30.0  # seconds that wait=True waits
_ANSWER_WITHIN: Final = 60.0
_SHOWN: Final = 500  # characters of what a server says
_PROPAGATIONS: Final = ("Background", "Foreground", "Orphan")
_HOW: Final = "{name!r} with namespace=, or 'namespace/{name}'"
_QUOTED: Final = re.compile(r'Invalid value: ("(?:[^"\\]|\\.)*"|\S+)')
_GO_VALUE: Final = re.compile(r"&value\.valueUnstructured\{Value:(.*)\}")
_UNTYPED: Final = re.compile(r"failed to create typed patch object(?: \([^)]*\))?: (.*)", re.DOTALL)
"""A 500 that says what in an apply does not fit the schema: a line, or a line for each field."""
_MISSING_RIGHT: Final = re.compile(
    r' cannot .*(?:in the namespace "[^"]*"|at the cluster scope)(?:$|: RBAC: )'
)
"""A 403 that a right would help against. An authorizer that gives another reason says itself what
is wrong, such as that the server is read-only."""
_TOO_LARGE: Final = re.compile(r"too large|larger than max")
_IDENTIFYING: Final = frozenset({"apiVersion", "kind", "metadata"})
_PATCHED_WITH_STATUS: Final[tuple[list[str], ...]] = ([], ["status"], ["metadata"])
_MANAGER: Final = re.compile(r'conflict with "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Write:
    """One write of one object."""

    verb: str
    """``patch``, ``apply`` or ``delete``: what a message calls it."""
    key: Key
    body: Any
    content_type: str = "application/json"
    query: Query = ()
    subresource: str = ""
    patience: float | None = None
    """Seconds to wait for the cache afterwards; None is not at all."""

    @property
    def method(self) -> str:
        """What HTTP calls it."""
        return "DELETE" if self.verb == "delete" else "PATCH"

    def path(self, gvr: GroupVersionResource) -> str:
        """Of the object, in the API."""
        namespace, _, name = self.key.rpartition("/")
        parts = ["apis", gvr.group] if gvr.group else ["api"]
        parts.append(gvr.version)
        if namespace:
            parts += ["namespaces", namespace]
        parts += [gvr.resource, name]
        if self.subresource:
            parts.append(self.subresource)
        return "/" + "/".join(quote(part, safe="") for part in parts)


class Writes(ABC, Generic[W]):
    """The writes of single objects: what is asked for is checked at once, and then made.

    In a thread a write returns the object; in an event loop it is awaited, and the request made on
    a thread, so that one that is cancelled may have been made. To ``wait`` costs no thread there.
    """

    gvr: GroupVersionResource

    def patch(
        self,
        name: str,
        namespace: str | None,
        patch: Patch,
        *,
        field_manager: str | None = None,
        wait: Wait = False,
    ) -> W:
        """Change an object, and return it as it then is.

        A dict is merged into the object, and None in it removes what it stands for; a list has the
        operations of a JSON patch. ``wait`` waits until the cache has seen it: True at most 30 s,
        a number so many seconds; WaitTimeoutError if it has not, although it is written. An object
        that the informer's selectors leave out is not waited for. Refusals are `ForbiddenError`,
        `ObjectNotFoundError`, `ConflictError`, `InvalidError`, or another `WriteError`.
        """
        key = self._key_of(name, namespace)
        asked = patching(key, patch, field_manager=field_manager, subresource="", wait=wait)
        return self._write(asked)

    def patch_status(
        self,
        name: str,
        namespace: str | None,
        patch: Patch,
        *,
        field_manager: str | None = None,
        wait: Wait = False,
    ) -> W:
        """`patch` of the status subresource: ``{"status": {"phase": "Ready"}}``, or without status.

        A dict that has ``status`` is merged into the object, any other one into its status. The
        paths of a JSON patch begin with ``/status``. A patch that cannot change the status is a
        ValueError, since the server would ignore it.
        """
        key = self._key_of(name, namespace)
        patch = _of_status(patch)
        asked = patching(key, patch, field_manager=field_manager, subresource="status", wait=wait)
        return self._write(asked)

    def apply(
        self,
        obj: Mapping[str, object],
        *,
        field_manager: str = FIELD_MANAGER,
        force: bool = False,
        subresource: str = "",
        wait: Wait = False,
    ) -> W:
        """Have an object be as given: a server-side apply, which creates it if it is not there.

        ``obj`` has what ``field_manager`` wants to decide on. A field that another manager owns is
        a `ConflictError` that names it; ``force`` takes it over. ``wait`` is that of `patch`.
        """
        asked = applying(
            self.gvr,
            self._key_of(*named_by(obj)),
            obj,
            field_manager=field_manager,
            force=force,
            subresource=subresource,
            wait=wait,
        )
        return self._write(asked)

    def delete(
        self,
        name: str,
        namespace: str | None = None,
        *,
        propagation: str | None = None,
        uid: str | None = None,
        wait: Wait = False,
    ) -> W:
        """Delete an object; returns the server's Status, or the object if finalizers keep it.

        ``propagation`` is Background, Foreground or Orphan; with ``uid`` only the object that has
        it is deleted. ``wait`` waits until it is gone from the cache, also if that has yet to see
        it come; WaitTimeoutError names the finalizers that keep it.
        """
        key = self._key_of(name, namespace)
        asked = deleting(key, propagation=propagation, uid=uid, wait=wait)
        return self._write(asked)

    @abstractmethod
    def _key_of(self, name: str, namespace: str | None) -> Key:
        """The key of an object, checked as reads check it."""

    @abstractmethod
    def _write(self, asked: Write) -> W:
        """Make a write, and wait for the cache if that is asked for."""


def patching(
    key: Key, patch: object, *, field_manager: str | None, subresource: str, wait: Wait
) -> Write:
    """A merge patch or a JSON patch."""
    if isinstance(patch, Mapping):
        kind = "merge-patch"
    elif isinstance(patch, list | tuple):
        kind = "json-patch"
    else:
        raise TypeError(
            f"the patch is {type(patch).__name__}: give a dict, which is merged into the object, "
            "or a list, the operations of a JSON patch"
        )
    return Write(
        "patch",
        key,
        patch,
        f"application/{kind}+json",
        (("fieldManager", _manager(field_manager or FIELD_MANAGER)),),
        subresource,
        _patience(wait),
    )


def _of_status(patch: Patch) -> Patch:
    """The patch of an object that is meant by a patch of its status."""
    if not isinstance(patch, Mapping):
        for each in patch if isinstance(patch, list | tuple) else ():
            path = each.get("path") if isinstance(each, Mapping) else None
            outside = isinstance(path, str) and path.split("/")[1:2] not in _PATCHED_WITH_STATUS
            if outside and each.get("op") != "test":
                raise ValueError(
                    f"the path {path!r} is outside of /status: give one such as '/status/phase'"
                )
        return patch
    if "status" in patch or set(patch) <= _IDENTIFYING:
        return patch
    if "spec" in patch or _IDENTIFYING & set(patch):
        raise ValueError(
            f"the patch has {', '.join(map(str, patch))} and no status: give "
            "{'status': {...}}, or the fields of the status alone"
        )
    return {"status": patch}


def applying(
    gvr: GroupVersionResource,
    key: Key,
    obj: Mapping[str, object],
    *,
    field_manager: str,
    force: bool,
    subresource: str,
    wait: Wait,
) -> Write:
    """A server-side apply."""
    manager = _manager(field_manager)
    checked_flag("force", force)
    checked_text("subresource", subresource, "its name, such as 'status'")
    version = f"{gvr.group}/{gvr.version}" if gvr.group else gvr.version
    named = obj.get("apiVersion", version)
    if named != version:
        raise ValueError(f"the object is of {named!r}, and the informer's resource is {gvr}")
    if not obj.get("kind"):
        raise ValueError(f"the object has no kind: give that of {gvr}")
    namespace, _, name = key.rpartition("/")
    given = obj["metadata"]
    metadata = dict(given) if isinstance(given, Mapping) else {}
    metadata["name"] = name
    metadata.pop("managedFields", None)  # of an object that was read; it cannot be applied
    if namespace:
        metadata["namespace"] = namespace
    return Write(
        "apply",
        key,
        {**obj, "apiVersion": version, "metadata": metadata},
        "application/apply-patch+yaml",  # JSON is YAML
        (("fieldManager", manager), ("force", "true" if force else "false")),
        subresource,
        _patience(wait),
    )


def deleting(key: Key, *, propagation: str | None, uid: str | None, wait: Wait) -> Write:
    """A deletion."""
    if propagation is not None and propagation not in _PROPAGATIONS:
        raise ValueError(f"propagation is {propagation!r}: give {', '.join(_PROPAGATIONS)}")
    body: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if propagation is not None:
        body["propagationPolicy"] = propagation
    if uid is not None:
        body["preconditions"] = {"uid": checked_text("uid", uid, "the object's, a text")}
    return Write("delete", key, body, patience=_patience(wait))


def named_by(obj: object) -> tuple[str, str | None]:
    """The name and the namespace that an object says it has."""
    metadata = obj.get("metadata") if isinstance(obj, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(name, str) or not name:
        raise ValueError("the object has no metadata.name: give a dict that has one")
    return name, metadata.get("namespace") if isinstance(metadata, Mapping) else None


def until_written(informer: SharedIndexInformer, write: Write) -> Waiting[Object]:
    """Write, in the thread that carries this out; then wait for the cache if that was asked for."""
    yield from until_possible(informer, write)
    answer = send(informer, write)
    yield from until_held(informer, write, answer)
    return answer


def until_possible(informer: SharedIndexInformer, write: Write) -> Waiting[None]:
    """ValueError if no object can have the key, or if the cache never holds it."""
    namespace, _, name = write.key.rpartition("/")
    if not name:
        raise ValueError("the name is empty: give that of the object")
    if write.patience is not None:
        informer.check_watched(namespace)
        if informer.is_stopped():
            raise StoppedError(
                f"the informer of {informer.gvr} has stopped: leave wait out, or ask a running "
                "factory for a new one"
            )
    yield from informer.key_rules.until_checked(write.key, _HOW, Deadline(_PATIENCE))


def send(informer: SharedIndexInformer, write: Write) -> Object:
    """Make a write, and give what the server answered."""
    source = informer.runtime.source
    client: Any = source.writes_client
    request = f"{write.verb} {_subject(informer, write)}"
    try:
        answer = client.request(
            write.method,
            write.path(informer.gvr),
            body=write.body,
            query_params=list(write.query),
            content_type=write.content_type,
            serialize=False,
            _request_timeout=_ANSWER_WITHIN,
        )
    except DynInformerError:
        raise
    except Exception as error:  # noqa: BLE001 - the official client has no root of its errors
        log_warnings(request, getattr(error, "headers", None) or {})
        failed = _failed(informer, write, error)
    else:
        log_warnings(request, answer.headers)
        found: Object = json.loads(answer.data)
        return found
    raise failed  # without the official client's error: it has the request's headers


def until_held(informer: SharedIndexInformer, write: Write, answer: Object) -> Waiting[None]:
    """Wait until the cache has what was written, if that was asked for."""
    if write.patience is None:
        return
    if write.verb == "delete":
        yield from _until_gone(informer, write, answer)
        return
    held = informer.store.get_by_key(write.key) is not None
    shard = informer.options.shard
    ours = shard is None or shard.owns(str(answer.get("metadata", {}).get("uid", "")))
    if not held and not (ours and _selected(*informer.selectors, answer)):
        return  # neither selected before nor now: the cache is as it has to be
    try:
        yield from informer.until_seen(answer, write.patience, None)
    except WaitTimeoutError as error:
        raise WaitTimeoutError(
            f"{_subject(informer, write)} is written, but {error}", None
        ) from None


def _until_gone(informer: SharedIndexInformer, write: Write, answer: Object) -> Waiting[None]:
    """Wait until the object that was deleted is not in the cache any more."""
    uid = _uid_of(answer)

    def other(obj: Object) -> bool:
        return bool(uid) and obj["metadata"].get("uid") != uid

    namespace, _, name = write.key.rpartition("/")
    deadline = Deadline(write.patience)
    try:
        if informer.store.get_by_key(write.key) is None:
            # It may have been created so lately that neither this nor its end is known here.
            yield from informer.until_fresh(0, deadline.left)
        held = informer.store.get_by_key(write.key)
        if held is None or other(held):
            return
        yield from informer.until_met("delete", name, namespace or None, deadline.left)
    except StaleCacheError as error:
        raise WaitTimeoutError(
            f"{_subject(informer, write)} is deleted, but {error}", None
        ) from None
    except WaitTimeoutError as error:
        last = error.last or {}
        if last and other(last):
            return
        finalizers = last.get("metadata", {}).get("finalizers") or []
        why = (
            f"its finalizers {', '.join(map(str, finalizers))} keep it"
            if finalizers
            else "the cache has not seen the end of it"
        )
        raise WaitTimeoutError(
            f"{_subject(informer, write)} is being deleted, but {why} after {write.patience} s",
            error.last,
        ) from None


def _selected(label_selector: str, field_selector: str, obj: Object) -> bool:
    """Whether the selectors of an informer select an object."""
    metadata = obj.get("metadata", {})

    def value_of(field: str) -> str:
        found: Any = obj
        for name in field.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        if found is None or isinstance(found, bool):
            return "" if found is None else str(found).lower()
        return str(found)

    labels = LabelSelector.parse(label_selector).matches(metadata.get("labels") or {})
    return labels and FieldSelector.parse(field_selector).matches(value_of)


def _manager(name: object) -> str:
    return checked_name("field_manager", name, "a name for what writes")


def _patience(wait: object) -> float | None:
    if wait is True:
        return _PATIENCE
    if wait is False or wait is None:
        return None
    if not isinstance(wait, int | float):
        raise TypeError(f"wait is {wait!r}: give True, or the seconds to wait at most")
    if not wait >= 0:
        raise ValueError(f"wait is {wait!r}: give True, or the seconds to wait at most")
    return float(wait)


def _uid_of(answer: Object) -> str:
    """Of a deleted object: the answer is a Status that names it, or the object."""
    details = answer.get("details") if answer.get("kind") == "Status" else answer.get("metadata")
    return str(details.get("uid") or "") if isinstance(details, dict) else ""


# -- what went wrong ------------------------------------------------------------------------


def _failed(informer: SharedIndexInformer, write: Write, error: Exception) -> Exception:
    code = getattr(error, "status", None)
    if not isinstance(code, int):
        source = informer.runtime.source
        return unanswered(error, source.host, source.proxy, "asked", _ANSWER_WITHIN)
    if not code:  # no answer: TLS, say
        said = str(getattr(error, "reason", ""))[:_SHOWN]
        return UnreachableError(f"cannot {write.verb} {_subject(informer, write)}: {said}")
    return refused(informer.gvr, write, code, _status(getattr(error, "body", None)))


def _status(body: object) -> Object:
    """The Status of an answer, {} if it is something else."""
    try:
        found = json.loads(body) if isinstance(body, str | bytes) else body
    except ValueError:
        return {}
    return found if isinstance(found, dict) and found.get("kind") == "Status" else {}


def refused(gvr: GroupVersionResource, write: Write, code: int, status: Object) -> Exception:
    """What to raise for an answer that is a refusal.

    >>> write = Write("patch", "prod/shop", {})
    >>> certificates = GroupVersionResource("cert-manager.io", "v1", "certificates")
    >>> status = {"kind": "Status", "details": {"name": "shop"}}
    >>> print(refused(certificates, write, 404, status))
    cannot patch certificates.v1.cert-manager.io 'prod/shop': there is no such object
    """
    said = _said(gvr, str(status.get("message") or f"HTTP {code}"))
    head = f"cannot {write.verb} {gvr} {write.key!r}"
    if code == 401:
        return UnauthorizedWriteError(
            f"{head}: the credentials were refused (401: {said}). Renew them", code, status
        )
    if code == 403:
        who = said.split(" is forbidden: ", 1)[-1]
        verbs = "patch, and create for what is new," if write.verb == "apply" else write.verb
        resource = f"{gvr.resource}/{write.subresource}" if write.subresource else gvr.resource
        advice = f"Give it {verbs} on {resource}" if _MISSING_RIGHT.search(who) else ""
        return ForbiddenError(f"{head}: forbidden ({who}). {advice}".rstrip(), code, status)
    if code == 404:
        return _not_found(gvr, write, head, status)
    if code == 409:
        return _conflict(head, code, status, said)
    untyped = _UNTYPED.search(str(status.get("message"))) if code == 500 else None
    if code in (400, 422) or untyped:
        found = _of_schema(untyped[1]) if untyped else _of_fields(status)
        causes = tuple((field, _said(gvr, text)) for field, text in found)
        told = "; ".join(f"{field}: {text}" for field, text in causes) or said
        return InvalidError(
            f"{head}: the server refuses it as invalid. {told}", code, status, causes
        )
    advice = "Try again later" if code == 429 or code >= 500 else ""
    if _TOO_LARGE.search(said):
        advice = "Make the object smaller"
    return WriteError(
        f"{head}: the server answered {code} ({said}). {advice}".rstrip(), code, status
    )


def _not_found(gvr: GroupVersionResource, write: Write, head: str, status: Object) -> Exception:
    details = status.get("details")
    name = details.get("name") if isinstance(details, dict) else None
    namespace, _, own = write.key.rpartition("/")
    if name and name == namespace and name != own:
        return ObjectNotFoundError(f"{head}: there is no namespace {name!r}")
    if not name:
        what = f"{gvr}, or no {write.subresource!r} of it" if write.subresource else str(gvr)
        return UnknownResourceError(f"{head}: the server has no {what}, or none of that scope")
    return ObjectNotFoundError(f"{head}: there is no such object")


def _conflict(head: str, code: int, status: Object, said: str) -> Exception:
    fields = []
    for each in _causes(status):
        found = _MANAGER.search(str(each.get("message")))
        if each.get("reason") == "FieldManagerConflict" and found:
            fields.append((str(each.get("field") or ""), found[1]))
    if not fields:
        return ConflictError(f"{head}: {said}. Read it again, and try again", code, status)
    owned = ", ".join(f'{field} by "{manager}"' for field, manager in fields)
    return ConflictError(
        f"{head}: others own fields of it: {owned}. Leave these out, or pass force=True to take "
        "them over",
        code,
        status,
        tuple(fields),
    )


def _causes(status: Object) -> list[Object]:
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return [each for each in causes or () if isinstance(each, dict)]


def _of_fields(status: Object) -> list[tuple[str, str]]:
    """The fields that a Status names, and what is wrong with each."""
    return [
        (str(each.get("field") or ""), str(each.get("message") or "")) for each in _causes(status)
    ]


def _of_schema(complaints: str) -> list[tuple[str, str]]:
    r"""The fields that an apply's complaint names, and what is wrong with each.

    >>> _of_schema("errors:\n  .spec.a: not declared\n  .spec.b: expected string")
    [('spec.a', 'not declared'), ('spec.b', 'expected string')]
    """
    found = []
    for line in complaints.removeprefix("errors:\n").splitlines():
        field, _, text = line.strip().partition(": ")
        found.append((field.removeprefix("."), text))
    return found


def _said(gvr: GroupVersionResource, text: str) -> str:
    """What the server says, to be shown; without what may be a secret."""
    if of_secrets(gvr):
        text = _QUOTED.sub("Invalid value: (not shown)", text)
        text = _GO_VALUE.sub("another type", text)
    text = _GO_VALUE.sub(r"\1", text)
    return " ".join(text.split())[:_SHOWN]


def _subject(informer: SharedIndexInformer, write: Write) -> str:
    return f"{informer.gvr} {write.key!r}"
