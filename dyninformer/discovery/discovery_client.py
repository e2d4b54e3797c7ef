"""Asking a server what it serves: two requests where it knows the aggregated form."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeAlias

from dyninformer.discovery import documents
from dyninformer.discovery.resources import ServedVersion
from dyninformer.errors import UnauthorizedError, UnreachableError
from dyninformer.threads import spawn
from dyninformer.transport.requests import DocumentSource, JsonReply, short

_ROOTS = ("/api", "/apis")
_AGGREGATED = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"
_ACCEPT = f"{_AGGREGATED},application/json"  # a server that does not know the first takes the next
_PLAIN = {"Accept": "application/json"}
_AT_ONCE = 4  # requests side by side, where each group-version has to be asked for
_PATIENCE = 10.0  # seconds of silence from one API group: the others should not wait for it long

Served: TypeAlias = list[ServedVersion]
GroupVersions: TypeAlias = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a root said in the aggregated form: while its Etag is this one, it says the same."""

    etag: str
    served: tuple[ServedVersion, ...]


class RefusedError(UnreachableError):
    """The server answers, and will go on answering so: no right, or no API server. Not for import.

    Users catch the `UnreachableError` that it is. Refused credentials are an `UnauthorizedError`.
    """


class DiscoveryClient:
    """Asks one server, and keeps nothing except Etags. Used by one thread at a time."""

    def __init__(self, source: DocumentSource, owner: object) -> None:
        self._source = source
        self._owner = owner
        self._remembered: dict[str, _Answer] = {}

    def served(self) -> Served:
        """Everything, in the server's order; `UnreachableError` says why it cannot be asked.

        A group-version that cannot be read is there all the same, with its problem.
        """
        found: Served = []
        for root in _ROOTS:
            found += self._root(root)
        return found

    def _root(self, root: str) -> Iterable[ServedVersion]:
        remembered = self._remembered.get(root)
        headers = {"Accept": _ACCEPT}
        if remembered is not None:
            headers["If-None-Match"] = remembered.etag
        reply = get(self._source, root, headers)
        if reply.status == 304 and remembered is not None:
            return remembered.served
        if reply.status != 200:
            raise refusal_error(self._source.host, root, reply)
        try:
            if not documents.is_aggregated(reply.body):
                self._remembered.pop(root, None)
                return self._each(documents.group_versions(reply.body))
            served = tuple(documents.aggregated(reply.body))
        except documents.MalformedError as error:
            raise RefusedError(
                f"{self._source.host} answers {root} with no discovery document "
                f"({short(str(error))}). "
                "Is this the address of a Kubernetes API server?"
            ) from None
        etag = reply.headers.get("Etag", "")
        if etag:
            self._remembered[root] = _Answer(etag, served)
        return served

    def _each(self, wanted: GroupVersions) -> Served:
        """The old way: every group-version by a request of its own, a few side by side."""
        results: list[Future[ServedVersion]] = [Future() for _ in wanted]
        numbers = itertools.count()  # next() on it is one step: each number goes to one thread

        def work() -> None:
            while (number := next(numbers)) < len(wanted):
                try:
                    results[number].set_result(self._one(*wanted[number]))
                except Exception as error:  # noqa: BLE001 - told to the thread that waits for it
                    results[number].set_exception(error)

        for index in range(min(_AT_ONCE, len(wanted))):
            spawn(self._owner, f"dyninformer discovery {index}", work)
        try:
            found = [result.result() for result in results]
        finally:
            for _ in range(
                len(wanted)
            ):  # after an error or an interrupt no thread begins another one
                next(numbers)
        if found and not any(each.known for each in found):
            raise UnreachableError(
                f"none of the API groups of {self._source.host} can be asked: {found[0].problem}."
            )
        return found

    def _one(self, group: str, version: str) -> ServedVersion:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            reply = get(self._source, path, _PLAIN, _PATIENCE)
            if reply.status == 200:
                return documents.resource_list(group, version, reply.body)
            problem = f"it answers {reply.status}"
        except UnreachableError as error:
            problem = short(str(error))
        except documents.MalformedError:
            problem = "its answer is no discovery document"
        return ServedVersion(group, version, problem=problem, known=False)


def get(
    source: DocumentSource, path: str, headers: Mapping[str, str] = _PLAIN, deadline: float = 30.0
) -> JsonReply:
    """The answer to a GET; credentials that are refused are read anew, once."""
    reply = source.get_json(path, headers=headers, deadline=deadline)
    if reply.status == 401:
        source.reload_credentials()
        reply = source.get_json(path, headers=headers, deadline=deadline)
    return reply


def refusal_error(
    host: str, path: str, reply: JsonReply, head: str = ""
) -> UnreachableError | UnauthorizedError:
    """What to raise for an answer other than 200; ``head`` goes before the reason."""
    text = head + _refusal(host, path, reply)
    if reply.status == 401:
        return UnauthorizedError(text)
    passes = reply.status == 429 or reply.status >= 500
    return UnreachableError(text) if passes else RefusedError(text)


def _refusal(host: str, path: str, reply: JsonReply) -> str:
    """Why an answer other than 200 came, and what can be done."""
    said = _message(reply)
    because = f": {said}" if said else ""
    if reply.status == 401:
        return (
            f"{host} refuses the credentials (401{because}). "
            "Renew them, or choose another context of the kubeconfig."
        )
    if reply.status == 403:
        who = said.removeprefix("forbidden: ") or f"cannot get path {path!r}"
        return (
            f"forbidden at {host} ({who}). Give the user the ClusterRole system:discovery, "
            "or pass a GroupVersionResource, for which nothing is looked up."
        )
    if reply.status == 404:
        return f"{host} has no {path} (404). Is this the address of a Kubernetes API server?"
    if reply.status == 429 or reply.status >= 500:
        return f"{host} is overloaded, starting or broken ({reply.status}{because}). Try again."
    return f"{host} answers {path} with {reply.status}{because}. Is this an API server?"


def _message(reply: JsonReply) -> str:
    message = reply.body.get("message") if isinstance(reply.body, dict) else None
    if not isinstance(message, str):
        return ""
    return short("".join(each if each.isprintable() else " " for each in message))
