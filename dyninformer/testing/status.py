"""Failures as the API server words them: an exception that is a Status object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from dyninformer.errors import DynInformerError
from dyninformer.types import Object


class ApiError(DynInformerError):
    """A refusal. ``body()`` is the Status that the real server would send.

    ``details`` None leaves the field out, ``reason`` None does too (a bare 500).
    ``text`` replaces the Status by a text/plain body (an unknown path, an overload).
    ``delay`` is how many seconds the real server takes to say so: whatever sends it waits as long.

    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     try:
    ...         server.get("namespaces/nowhere")
    ...     except ApiError as error:
    ...         print(error.code, error.reason)
    404 NotFound
    """

    def __init__(
        self,
        code: int,
        reason: str | None,
        message: str,
        *,
        details: Object | None = None,
        retry_after: int | None = None,
        text: str | None = None,
        metadata: Object | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        delay: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after
        self.text = text
        self.metadata = metadata or {}
        self.headers = headers
        self.delay = delay
        self.warnings: tuple[str, ...] = ()
        """What the request was warned of before it was refused."""

    def body(self) -> Object:
        """The Status object, keys in the server's order."""
        status: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason is not None:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


@contextmanager
def warned(warnings: tuple[str, ...]) -> Iterator[None]:
    """Whatever is refused within is refused with these warnings beside it."""
    try:
        yield
    except ApiError as error:
        error.warnings = (*warnings, *error.warnings)
        raise


def cause(reason: str, message: str, field: str | None = None) -> Object:
    """One entry of ``details.causes``."""
    found: Object = {"reason": reason, "message": message}
    if field is not None:
        found["field"] = field
    return found


def page_not_found() -> ApiError:
    """The 404 of a path that nothing serves: text, never a Status."""
    headers = (("X-Content-Type-Options", "nosniff"),)
    text = "404 page not found"
    return ApiError(404, "NotFound", text, text=f"{text}\n", headers=headers)


def not_found(group: str, plural: str, name: str) -> ApiError:
    """A missing object of a served resource."""
    full = f"{plural}.{group}" if group else plural
    return ApiError(
        404, "NotFound", f'{full} "{name}" not found', details=_details(name, group, plural)
    )


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    """An optimistic lock that failed, or a precondition that did."""
    full = f"{plural}.{group}" if group else plural
    message = f'Operation cannot be fulfilled on {full} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_details(name, group, plural))


def already_exists(group: str, plural: str, name: str, *, deleting: bool) -> ApiError:
    """A create of what is there, or is still there because its finalizers are not done."""
    full = f"{plural}.{group}" if group else plural
    message = f'{"object is being deleted: " if deleting else ""}{full} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_details(name, group, plural))


def forbidden(
    group: str, plural: str, name: str, why: str, causes: Iterable[Object] = ()
) -> ApiError:
    """A 403 of admission, which every user gets."""
    full = f"{plural}.{group}" if group else plural
    details = _details(name, group, plural)
    found = list(causes)
    if found:
        details["causes"] = found
    message = f'{full} "{name}" is forbidden: {why}' if name else f"{full} is forbidden: {why}"
    return ApiError(403, "Forbidden", message, details=details)


def bad_request(message: str) -> ApiError:
    """A 400 with its one-line reason."""
    return ApiError(400, "BadRequest", message)


def invalid(group: str, kind: str, name: str, causes: Iterable[Object]) -> ApiError:
    """A 422 that lists every field at fault; ``causes`` as made by `cause`."""
    found = list(causes)
    parts = [f"{c['field']}: {c['message']}" if c.get("field") else c["message"] for c in found]
    parts = list(dict.fromkeys(parts))  # a cause listed twice is told of once
    what = parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"
    full = f"{kind}.{group}" if group else kind
    details = {**_details(name, group, kind), "causes": found}
    return ApiError(422, "Invalid", f'{full} "{name}" is invalid: {what}', details=details)


def _details(name: str, group: str, kind: str) -> Object:
    details: Object = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    details["kind"] = kind
    return details
