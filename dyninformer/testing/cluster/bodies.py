"""The object in a request body, and what the server says to a body without one."""

from __future__ import annotations

from typing import Any

from dyninformer.testing.cluster.json_bodies import (
    BodyError,
    NumberRangeError,
    UnreadableError,
    check_depth,
    decode_json,
    type_name,
    wrong_type,
)
from dyninformer.testing.cluster.yaml_bodies import decode_yaml
from dyninformer.testing.status import ApiError, bad_request

__all__ = [
    "BodyError",
    "UnreadableError",
    "check_depth",
    "decode_json",
    "decode_object",
    "decode_yaml",
    "require_kind",
    "type_name",
    "wrong_type",
]


def decode_object(
    raw: bytes, kind: str, version: str = "v1", *, yaml_body: bool = False
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The object of a create or replace, and its repeated fields; ApiError 400 if it is none.

    ``kind`` and ``version`` are what the path takes: messages name them.
    """
    try:
        value, duplicates = (decode_yaml if yaml_body else decode_json)(raw)
    except NumberRangeError as error:
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: {error}'
        ) from None
    except BodyError as error:
        why = str(error) if yaml_body else f"couldn't get version/kind; json parse error: {error}"
        raise _unrecognized(kind, why, raw) from None
    if value is None:
        raise _unrecognized(kind, f"Object 'Kind' is missing in '{raw.decode()}'", raw)
    if not isinstance(value, dict):
        why = f"couldn't get version/kind; json parse error: {wrong_type(value)}"
        raise _unrecognized(kind, why, raw)
    for field in ("apiVersion", "kind"):
        given = value.get(field)
        if given is not None and not isinstance(given, str):
            why = (
                "couldn't get version/kind; json parse error: json: cannot unmarshal "
                f"{type_name(given)} into Go struct field .{field} of type string"
            )
            raise _unrecognized(kind, why, raw)
    return value, duplicates


def require_kind(body: dict[str, Any], kind: str, raw: bytes) -> None:
    """A custom resource says itself what it is; ApiError 400 if it does not."""
    if not body.get("kind"):
        missing = f"Object 'Kind' is missing in '{raw.decode(errors='replace')}'"
        raise _unrecognized(kind, missing, raw)


def _unrecognized(kind: str, why: str, raw: bytes) -> ApiError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind}): {why} ({_excerpt(raw)})"
    )


def _excerpt(raw: bytes) -> str:
    """The beginning of a body, in hexadecimal unless it looks like a JSON object."""
    if not raw:
        return "<empty>"
    if raw.lstrip()[:1] != b"{":
        return raw[:30].hex() + (" ..." if len(raw) > 30 else "")
    return raw[:30].decode(errors="replace") + (" ..." if len(raw) > 30 else "")
