"""What a request is about: verb, group, version, resource, subresource, namespace, name.

The rules are the real server's, odd corners included: they decide what is asked of
the authoriser before anything is known to exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dyninformer.testing.messages import Request

_VERBS = {
    "GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch",
    "DELETE": "delete",
}  # fmt: skip
_ON_NAMESPACE_ITSELF = ("status", "finalize")
_NAME_TERM = re.compile(r"\s*metadata\.name\s*={1,2}\s*([^,=!\s]+)\s*")


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """What is asked. For a path that is no resource only ``path`` and ``verb`` mean something.

    Not for import.
    """

    path: str
    verb: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    selected_name: str = ""
    """Of a list or watch: the one name that its field selector asks for."""

    @property
    def authorised_name(self) -> str:
        """The name that rights are judged by: such a list or watch is judged as that name."""
        return self.name or self.selected_name

    @property
    def authorised_resource(self) -> str:
        """``widgets`` or ``widgets/status``, as rules and refusals name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def read_request_info(request: Request) -> RequestInfo:
    """What ``request`` asks, from its method, path and query alone."""
    path = request.path
    parts = path.strip("/").split("/")
    if parts[0] == "apis":
        group, rest = parts[1] if len(parts) > 1 else "", parts[2:]
    elif parts[0] == "api":
        group, rest = "", parts[1:]
    else:
        rest = []
    if len(rest) < 2:
        return RequestInfo(path, request.method.lower())
    version, *rest = rest
    verb = _VERBS.get(request.method, "")
    forced_watch = rest[0] == "watch"
    if forced_watch:
        verb, rest = "watch", rest[1:]
        if not rest:
            return RequestInfo(path, request.method.lower())
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _ON_NAMESPACE_ITSELF:
            rest = rest[2:]
    resource, name, subresource = [*rest, "", "", ""][:3]
    if not name and not forced_watch:
        verb = _collection_verb(request, verb)
    selected = "" if name or verb not in ("list", "watch") else _selected_name(request)
    return RequestInfo(
        path, verb, is_resource=True, group=group, version=version, resource=resource,
        subresource=subresource, namespace=namespace, name=name,
        selected_name=selected,
    )  # fmt: skip


def watches(request: Request) -> bool:
    """``watch`` with any value but 0 and false is yes, also without a value."""
    asked = request.param("watch")
    return asked is not None and asked.lower() not in ("0", "false")


def _collection_verb(request: Request, verb: str) -> str:
    if verb == "get":
        return "watch" if watches(request) else "list"
    return "deletecollection" if verb == "delete" else verb


def _selected_name(request: Request) -> str:
    for term in (request.param("fieldSelector") or "").split(","):
        found = _NAME_TERM.fullmatch(term)
        if found:
            return found[1]
    return ""
