"""Leases read and written over a connection: what the rounds ask for, carried out."""

from __future__ import annotations

import json
import logging
import secrets
import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import quote

from dyninformer.checked import checked_name
from dyninformer.errors import DynInformerError
from dyninformer.factory import DynamicSharedInformerFactory
from dyninformer.resource import DNS_LABEL
from dyninformer.scale import leases
from dyninformer.scale.leases import GROUP, Lease
from dyninformer.scale.rounds import Answer, Ask, Failure, Look, Put
from dyninformer.transport.requests import short
from dyninformer.watching.client import Source

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient

    Client = DynamicSharedInformerFactory | DynamicClient | ApiClient | None

_CONFLICTS: Final = (409, 422)  # a deletion's preconditions are a 409, as is a name that is taken
_REFUSALS: Final = (400, 401, 403, 404, 405, 413, 415, 422, 429)  # nothing was, or will be, done
_SHOWN: Final = 300
_LONGEST_NAME: Final = 253

Troubles: TypeAlias = dict[str, tuple[str, str, str]]
"""By method: where, why, and what the server said of it."""

_logger = logging.getLogger(__name__)


class LeaseClient:
    """Asks for leases, and never raises: a lease that could not be had is a `Failure`.

    For one thread at a time. An answer is waited for ``patience`` seconds.
    """

    def __init__(self, source: Source, namespace: str, group: str, patience: float) -> None:
        self._source = source
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"
        self._namespace = namespace
        self._group = group
        self._patience = patience
        self._recent: frozenset[str] = frozenset()  # methods that failed since `begin`
        self._troubles: Troubles = {}  # replaced, never changed: any thread may look

    @property
    def trouble(self) -> str:
        """Why requests fail, in the server's words; "" once one of that kind has not.

        One that is not made again, since it was done after all, counts until the next `begin`.
        """
        return next((_told(method, *trouble) for method, trouble in self._troubles.items()), "")

    def begin(self) -> None:
        """A round begins: what has not failed in the last one is forgotten."""
        recent, self._recent = self._recent, frozenset()
        if not self._troubles.keys() <= recent:
            self._troubles = {each: why for each, why in self._troubles.items() if each in recent}

    def answer(self, ask: Ask) -> Answer:
        """What the server says."""
        if isinstance(ask, Look):
            query = [("labelSelector", f"{GROUP}={self._group}")]
            found = self._asked("GET", self._path, query=query)
            if isinstance(found, Failure):
                return found
            return [leases.read(each) for each in found.get("items") or ()]
        lease = ask.lease
        path = f"{self._path}/{quote(lease.name, safe='')}"
        if isinstance(ask, Put):
            body = leases.written(lease, self._namespace, self._group, datetime.now(UTC))
            verb, where = ("PUT", path) if lease.version else ("POST", self._path)
            found = self._asked(verb, where, body)
        else:
            conditions = {"resourceVersion": lease.version, "uid": lease.uid}
            body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}
            found = self._asked("DELETE", path, body)
            return found if isinstance(found, Failure) else lease
        return found if isinstance(found, Failure) else leases.read(found)

    def get(self, name: str) -> Lease | Failure:
        """One lease."""
        found = self._asked("GET", f"{self._path}/{quote(name, safe='')}")
        return found if isinstance(found, Failure) else leases.read(found)

    def _asked(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: list[tuple[str, str]] | None = None,
    ) -> dict[str, Any] | Failure:
        try:
            client: Any = self._source.writes_client
            answer = client.request(
                method,
                path,
                body=body,
                query_params=query or [],
                content_type="application/json",
                serialize=False,
                _request_timeout=self._patience,
            )
            found: dict[str, Any] = json.loads(answer.data)
        except Exception as error:  # noqa: BLE001 - the official client has no root of its errors
            return self._failed(method, path, error)
        self._clear(method)
        return found

    def _failed(self, method: str, path: str, error: Exception) -> Failure:
        status = getattr(error, "status", None)
        if status == 404 and _says_gone(error, path):
            self._clear(method)
            return Failure.GONE
        if status == 409 or (status in _CONFLICTS and method != "POST"):
            self._clear(method)
            return Failure.CONFLICT
        words = str(error) if isinstance(error, DynInformerError) else type(error).__name__
        said = ""
        if isinstance(status, int):
            words = f"HTTP {status} {getattr(error, 'reason', '') or ''}".rstrip()
            said = _message(error)
        self._say(method, path, words[:_SHOWN], said)
        if status == 401:
            self._read_credentials()
        return Failure.REFUSED if status in _REFUSALS else Failure.UNKNOWN

    def _read_credentials(self) -> None:
        """Anew, for the next request."""
        try:
            self._source.reload_credentials()
        except Exception as error:  # noqa: BLE001 - a plugin of the user's
            _logger.warning("%s: the credentials cannot be read: %r", self._group, error)

    def _clear(self, method: str) -> None:
        """A request was answered: reads may be while writes are not."""
        if method in self._troubles:
            self._troubles = {each: why for each, why in self._troubles.items() if each != method}

    def _say(self, method: str, path: str, why: str, said: str) -> None:
        """Log it when it changes: reads and writes fail for reasons of their own.

        What the server says with it names the lease, and so is another for each.
        """
        _, before, _ = self._troubles.get(method, ("", "", ""))
        if why != before:
            _logger.warning(
                "%s: leases cannot be asked for: %s", self._group, _told(method, path, why, said)
            )
        self._troubles = {**self._troubles, method: (path, why, said)}
        self._recent |= {method}


def _told(method: str, path: str, why: str, said: str) -> str:
    return f"{method} {path}: {why}" + (f": {said}" if said else "")


def _message(error: Exception) -> str:
    """What the server says of it: which right is missing, or that the namespace is not there."""
    try:
        return short(str(json.loads(getattr(error, "body", None) or "")["message"]))
    except (ValueError, LookupError, TypeError):
        return ""


def _says_gone(error: Exception, path: str) -> bool:
    """Whether the API server itself says that a lease is not there, and no proxy, of no path."""
    try:
        said = json.loads(getattr(error, "body", None) or "")
        name = said["details"]["name"]
    except (ValueError, LookupError, TypeError):
        return False
    return bool(path.endswith(f"/leases/{quote(str(name), safe='')}"))


def source_of(client: Client, kubeconfig: Any = None, context: str | None = None) -> Source:
    """A connection with the settings of a factory or a client, or of where this runs."""
    if isinstance(client, DynamicSharedInformerFactory):
        # Not its client for writes, which knows no namespace, and reads no token anew.
        return Source(client.settings, kubeconfig=kubeconfig, context=context)
    return Source(client, kubeconfig=kubeconfig, context=context)


def checked_lease(name: object, longest: int = _LONGEST_NAME) -> str:
    """The name of a lease, or what the names of several begin with."""
    found = checked_name("name", name, "a name for the leases, such as 'certs'")
    if len(found) > longest or not all(map(DNS_LABEL.match, found.split("."))):
        raise ValueError(
            f"name is {found!r}: give lower-case letters, digits and '-', {longest} at most"
        )
    return found


def own_identity(given: str | None) -> str:
    """A name that no other process has, and that begins with the pod's, or with the given one."""
    name = socket.gethostname() if given is None else checked_name("identity", given)
    return f"{name}_{secrets.token_hex(8)}"
