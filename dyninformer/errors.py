"""Every error this package raises on purpose, rooted in one class.

Each is also the built-in that a Python user would expect in its place, so that
``except ValueError`` or ``except TimeoutError`` go on meaning what they say.
"""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from typing import Any

from dyninformer.types import Object

__all__ = [
    "AmbiguousResourceError",
    "AuditError",
    "CacheSyncError",
    "ConfigError",
    "ConflictError",
    "DynInformerError",
    "EventTypeWarning",
    "ForbiddenError",
    "IncompleteRecordingWarning",
    "InvalidError",
    "JSONPathError",
    "JSONPathWarning",
    "LostShardError",
    "NotKeptError",
    "NotSyncedWarning",
    "ObjectNotFoundError",
    "OptionsConflictError",
    "SelectorError",
    "StaleCacheError",
    "StoppedError",
    "UnauthorizedError",
    "UnknownIndexError",
    "UnknownResourceError",
    "UnreachableError",
    "UnreadableFileError",
    "WaitTimeoutError",
    "WriteError",
]


class DynInformerError(Exception):
    """The root of every error that dyninformer raises on purpose.

    Each is a fitting built-in as well:

    >>> issubclass(UnreachableError, ConnectionError), issubclass(WaitTimeoutError, TimeoutError)
    (True, True)

    Each can be pickled, with its attributes, so that it reaches the parent of a worker process.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Restore the attributes without calling ``__init__``, whose parameters differ by class."""
        return copyreg.__newobj__, (type(self),), {**vars(self), "args": self.args}  # type: ignore[attr-defined]


class ConfigError(DynInformerError, ValueError):
    """No usable configuration: what was looked for, where, and what to do.

    >>> from dyninformer import DynamicSharedInformerFactory
    >>> try:
    ...     DynamicSharedInformerFactory(kubeconfig="/nowhere/config")
    ... except ConfigError as error:
    ...     print("/nowhere/config" in str(error))
    True
    """


class UnreachableError(DynInformerError, ConnectionError):
    """The API server could not be asked, or did not answer.

    >>> from dyninformer import DynamicSharedInformerFactory
    >>> from dyninformer.testing import ApiServer
    >>> from dyninformer.testing.faults import Refuse
    >>> with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
    ...     with server.faults.add(Refuse()):
    ...         try:
    ...             factory.for_resource("Widget")  # only the server knows which one is meant
    ...         except UnreachableError as error:
    ...             print("connection refused" in str(error))
    True
    """


class UnauthorizedError(DynInformerError, PermissionError):
    """The server refuses the credentials (401), also when they have been read again.

    ``for_resource``, ``sync`` and ``open_informer`` raise it at once, whatever their timeout, and
    so do writes. More time does not help: renew the credentials, or choose another context.
    Informers that run go on trying, with credentials that are read again.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     for resource in ("Namespace", "v1/namespaces"):
    ...         try:
    ...             open_informer(resource, client=server.client(token="expired"))
    ...         except UnauthorizedError as error:
    ...             print("401" in str(error))
    True
    True

    That of ``sync`` and ``open_informer`` is a `CacheSyncError` as well, that of a write a
    `WriteError`.
    """


class UnknownResourceError(DynInformerError, LookupError):
    """The server knows no such resource; the message names what is close.

    >>> from dyninformer import DynamicSharedInformerFactory
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
    ...     try:
    ...         factory.for_resource("namespacse")
    ...     except UnknownResourceError as error:
    ...         print(error)
    the server has no resource 'namespacse': did you mean namespaces?
    """


class AmbiguousResourceError(DynInformerError, LookupError):
    """The name fits resources of several groups; the message names them.

    >>> from dyninformer import DynamicSharedInformerFactory
    >>> from dyninformer.testing import ApiServer
    >>> def crd(group):
    ...     version = {"name": "v1", "served": True, "storage": True, "schema": {
    ...         "openAPIV3Schema": {"type": "object"}}}
    ...     return {
    ...         "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    ...         "metadata": {"name": f"gizmos.{group}"},
    ...         "spec": {"group": group, "scope": "Cluster", "versions": [version],
    ...                  "names": {"plural": "gizmos", "kind": "Gizmo"}}}
    >>> with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
    ...     server.install([crd("a.io"), crd("b.io")])
    ...     try:
    ...         factory.for_resource("Gizmo")
    ...     except AmbiguousResourceError as error:
    ...         print("gizmos.a.io and gizmos.b.io" in str(error))
    True
    """


class AuditError(DynInformerError, RuntimeError):
    """What is held could not be compared with what the server has; the message says why.

    >>> from dyninformer import DynamicSharedInformerFactory
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
    ...     namespaces = factory.for_resource("v1/namespaces")
    ...     try:
    ...         namespaces.informer.audit()
    ...     except AuditError as error:
    ...         print(error)
    cannot audit namespaces.v1: it is not started
    """


class ObjectNotFoundError(DynInformerError, LookupError):
    """The cache holds no such object; the message says whether the cache is synced.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     try:
    ...         namespaces.lister.get("prod")
    ...     except ObjectNotFoundError as error:
    ...         print(error)
    no namespaces.v1 'prod' in the cache, which is synced
    """


class UnknownIndexError(DynInformerError, LookupError):
    """The informer has no index of that name; the message lists those it has.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("v1/pods", client=server.client()) as pods:
    ...     try:
    ...         pods.lister.by_index("by-node", "worker-1")
    ...     except UnknownIndexError as error:
    ...         print("namespace" in str(error))
    True
    """


class UnknownClusterError(DynInformerError, LookupError):
    """The fleet has no cluster of that name; the message lists those it has.

    >>> from dyninformer import Fleet
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as eu, Fleet({"eu": eu.client()}) as fleet:
    ...     try:
    ...         fleet.cluster("us")
    ...     except UnknownClusterError as error:
    ...         print(error)
    the fleet has no cluster 'us'; it has: eu
    """


class OptionsConflictError(DynInformerError, ValueError):
    """Asked for with other options than before; the message names both.

    >>> from dyninformer import DynamicSharedInformerFactory
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
    ...     shop = factory.for_resource("v1/pods", label_selector="app=shop")
    ...     try:
    ...         factory.for_resource("v1/pods", label_selector="app=mail")
    ...     except OptionsConflictError as error:
    ...         print("app=shop" in str(error), "app=mail" in str(error))
    True True
    """


class StoppedError(DynInformerError, RuntimeError):
    """What was asked needs a running factory or informer, and this one has stopped.

    >>> from dyninformer import DynamicSharedInformerFactory
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
    ...     ended = factory.shutdown(timeout=5)
    ...     try:
    ...         factory.start()
    ...     except StoppedError as error:
    ...         print(error)
    this factory has been shut down: make a new one
    """


class CacheSyncError(DynInformerError, TimeoutError):
    """Not all informers synced in time. ``status`` says of each resource how it stands.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     try:
    ...         open_informer("v1/pods", client=server.client(), label_selector="a in b")
    ...     except CacheSyncError as error:
    ...         for gvr, status in error.status.items():  # and status.reason says why
    ...             print(gvr, status.synced)
    pods.v1 False
    """

    def __init__(self, message: str, status: Mapping[Any, Any]) -> None:
        super().__init__(message)
        self.status = status


class UnauthorizedSyncError(UnauthorizedError, CacheSyncError):
    """No informer that has not synced has credentials that its server takes."""


class StaleCacheError(DynInformerError, TimeoutError):
    """Nothing shows that a cache is as fresh as it must be; the message says since when, and why.

    ``status`` says of each resource that is too old how it stands; ``status.fresh_as_of`` is when
    its cache was last known to be as the server has it.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> from dyninformer.testing.faults import Refuse
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     with server.faults.add(Refuse()):
    ...         try:
    ...             namespaces.informer.wait_fresh(0, timeout=0.1)
    ...         except StaleCacheError as error:
    ...             print([str(gvr) for gvr in error.status])
    ['namespaces.v1']
    """

    def __init__(self, message: str, status: Mapping[Any, Any]) -> None:
        super().__init__(message)
        self.status = status


class WaitTimeoutError(DynInformerError, TimeoutError):
    """The condition was not met in time. ``last`` is the object's last state, None if absent.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     try:
    ...         namespaces.informer.wait_for("delete", name="default", timeout=0.05)
    ...     except WaitTimeoutError as error:
    ...         print(error.last["metadata"]["name"])
    default
    """

    def __init__(self, message: str, last: Object | None) -> None:
        super().__init__(message)
        self.last = last


class WriteError(DynInformerError, OSError):
    """The server refused a write. ``code`` is HTTP's, ``status`` the Status of the answer.

    The kinds that a program may want to tell apart have classes of their own; what is not there
    is an `ObjectNotFoundError`.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     try:
    ...         namespaces.delete("default", uid="of another one")
    ...     except WriteError as error:
    ...         print(error.code, error.status["reason"])
    409 Conflict
    """

    def __init__(self, message: str, code: int, status: Object) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class UnauthorizedWriteError(UnauthorizedError, WriteError):
    """A write was refused for its credentials."""


class ForbiddenError(WriteError, PermissionError):
    """The user has no right to a write; the message names the user and the right.

    >>> issubclass(ForbiddenError, PermissionError)
    True
    """


class ConflictError(WriteError):
    """What was to be written is another's, or has changed: read it again, or take it over.

    ``fields`` has each field that another manager owns, and its name, where an apply was refused.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> data = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}
    >>> with ApiServer() as server, open_informer("v1/configmaps", client=server.client()) as maps:
    ...     _ = server.create(data, "default")
    ...     try:
    ...         maps.patch("a", "default", {"metadata": {"resourceVersion": "1"}})
    ...     except ConflictError as error:
    ...         print(error.code)
    409
    """

    def __init__(
        self, message: str, code: int, status: Object, fields: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(message, code, status)
        self.fields = fields


class InvalidError(WriteError, ValueError):
    """The server calls what was to be written invalid. ``causes`` has each field, and why.

    ``code`` is 422 or 400, and 500 for an apply of a field that the schema does not have.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     try:
    ...         namespaces.patch("default", None, {"metadata": {"labels": {"a": "/"}}})
    ...     except InvalidError as error:
    ...         print(error.code, error.causes[0][0])
    422 metadata.labels
    """

    def __init__(
        self, message: str, code: int, status: Object, causes: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(message, code, status)
        self.causes = causes


class JSONPathError(DynInformerError, ValueError):
    """A path that cannot be used: what is wrong, at which column, and the likely fix.

    ``column`` counts from 1, and is None where no single place is to blame.

    >>> from dyninformer import JSONPath
    >>> try:
    ...     JSONPath("{.spec.containers[}")
    ... except JSONPathError as error:
    ...     print(error.column)
    18
    """

    def __init__(self, message: str, *, column: int | None = None) -> None:
        super().__init__(message)
        self.column = column


class SelectorError(DynInformerError, ValueError):
    """A label or field selector that cannot be used, in the API server's words.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("v1/pods", client=server.client()) as pods:
    ...     try:
    ...         pods.lister.list("app in shop")
    ...     except SelectorError as error:
    ...         print(error)
    unable to parse requirement: found 'shop' expected: '('
    """


class NotKeptError(DynInformerError, LookupError):
    """What is asked for is not kept: the history of an informer without one, or events.

    The message says what to ask for.

    >>> from dyninformer import open_informer
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, open_informer("ns", client=server.client()) as namespaces:
    ...     try:
    ...         namespaces.informer.history("default")
    ...     except NotKeptError as error:
    ...         print(error)
    the informer of namespaces.v1 keeps no history: ask for it with history=20
    """


class UnreadableFileError(DynInformerError, ValueError):
    """A snapshot or a recording that cannot be read: damaged, cut off, too large, or no such file.

    The message says where, and what to do. ``offset`` is the byte of the file near which it was
    noticed, None if no single place is to blame.

    >>> import tempfile
    >>> from dyninformer import Snapshot
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     try:
    ...         Snapshot.load(file.name)
    ...     except UnreadableFileError as error:
    ...         print(error.offset)
    0
    """

    def __init__(self, message: str, *, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


class IncompleteRecordingWarning(UserWarning):
    r"""A recording breaks off before its end; what came before that was read.

    >>> import tempfile, warnings
    >>> from dyninformer import open_recording
    >>> with tempfile.NamedTemporaryFile(suffix=".ndjson") as file:
    ...     _ = file.write(b'{"format":"dyninformer-recording","version":1,'
    ...                    b'"time":"2026-01-01T00:00:00Z","resources":[]}\n')
    ...     file.flush()
    ...     with warnings.catch_warnings(record=True, action="always") as warned:
    ...         print(list(open_recording(file.name)), warned[0].category.__name__)
    [] IncompleteRecordingWarning
    """


class JSONPathWarning(UserWarning):
    """A path that parses, but can hardly be meant: it finds nothing, or something else.

    So does a path that no object of a resource can have, by the schema of its CRD.

    >>> import warnings
    >>> from dyninformer import JSONPath
    >>> with warnings.catch_warnings(record=True, action="always") as warned:
    ...     path = JSONPath(".metadata.labels['app.kubernetes.io/name']")
    >>> [warning.category.__name__ for warning in warned]
    ['JSONPathWarning']
    """


class EventTypeWarning(UserWarning):
    """An event's type is compared with a word that it never is, such as ``"MODIFIED"``.

    >>> import warnings
    >>> from dyninformer import EventType
    >>> with warnings.catch_warnings(record=True, action="always") as warned:
    ...     print(EventType.UPDATED == "MODIFIED", warned[0].category.__name__)
    False EventTypeWarning
    """


class NotSyncedWarning(UserWarning):
    """A read before the first sync: what it says is not yet the cluster's state.

    >>> import warnings
    >>> from dyninformer import DynamicSharedInformerFactory
    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:
    ...     pods = factory.for_resource("v1/pods")
    ...     with warnings.catch_warnings(record=True, action="always") as warned:
    ...         print(pods.lister.list(), warned[0].category.__name__)
    [] NotSyncedWarning
    """


class LostShardError(DynInformerError, RuntimeError):
    """What is to be written belongs to another replica by now, or may soon: write nothing.

    `Fence.check`, `ShardMembership.owned` and `Leader` raise it. Whoever has the shard now is told
    all of its objects, so that nothing is missed.

    >>> issubclass(LostShardError, RuntimeError)
    True
    """
