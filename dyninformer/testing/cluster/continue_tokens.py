"""Continue tokens: where the next page begins, and of which revision it is."""

from __future__ import annotations

import base64
import json
import re
from typing import Any, NamedTuple

from dyninformer.testing.status import ApiError, bad_request

_VERSION = "meta.k8s.io/v1"


class ContinueToken(NamedTuple):
    """``revision`` below zero is "the newest": the list goes on, though not consistently.

    ``start`` is relative to what is listed: ``namespace/name`` of a whole collection,
    ``name`` of one namespace or of cluster-scoped objects, with a NUL after the last one read.
    """

    revision: int
    start: str

    def encode(self, *, from_cache: bool) -> str:
        """The token's text; a watch cache writes a slash before the start, etcd does not."""
        start = f"/{self.start}" if from_cache else self.start
        content = {"v": _VERSION, "rv": self.revision, "start": start}
        data = json.dumps(content, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(data).decode().rstrip("=")


def parse_continue(text: str) -> ContinueToken:
    """Raises the 400 that says what is wrong with the token."""
    content = _content(text)
    version, revision, start = (content.get(name) for name in ("v", "rv", "start"))
    if version != _VERSION:
        raise _invalid(f"server does not recognize this encoded version {version or ''}")
    if not revision:
        raise _invalid(f"incorrect encoded start resourceVersion (version {_VERSION})")
    if not start:
        raise _invalid(f"encoded start key empty (version {_VERSION})")
    key = start.removeprefix("/")
    if any(part in ("", ".", "..") for part in key.split("/")) and key:
        raise _invalid(start)
    return ContinueToken(revision, key)


def _invalid(why: str) -> ApiError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


def _content(text: str) -> dict[str, Any]:
    data = _decoded(text)
    stripped = data.lstrip(b" \t\r\n")
    if stripped and stripped[:1] not in b'{["-0123456789tfn':
        raise _invalid(f"invalid character {_shown(stripped[0])} looking for beginning of value")
    try:
        content = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise _invalid(_complaint(stripped, error)) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        kind = _GO_KINDS[type(content)]
        raise _invalid(f"json: cannot unmarshal {kind} into Go value of type storage.continueToken")
    for name, wanted, go in (("v", str, "string"), ("rv", int, "int64"), ("start", str, "string")):
        value = content.get(name)
        if value is not None and type(value) is not wanted:
            kind = _GO_KINDS[type(value)]
            raise _invalid(
                f"json: cannot unmarshal {kind} into Go struct field "
                f"continueToken.{name} of type {go}"
            )
    return content


_GO_KINDS = {
    str: "string", int: "number", float: "number", bool: "bool", list: "array", dict: "object"
}  # fmt: skip


def _decoded(text: str) -> bytes:
    bad = re.search(r"[^-_A-Za-z0-9]", text)
    if bad is not None:
        raise _invalid(f"illegal base64 data at input byte {len(text[: bad.start()].encode())}")
    if len(text) % 4 == 1:
        raise _invalid(f"illegal base64 data at input byte {len(text) - 1}")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _complaint(data: bytes, error: Exception) -> str:
    """In the words of Go's encoding/json where that is one look away."""
    if not isinstance(error, json.JSONDecodeError):
        return "exceeded max depth"
    if error.pos >= len(error.doc.rstrip()):
        return "unexpected end of JSON input"
    if error.msg == "Extra data":
        return f"invalid character {_shown(ord(error.doc[error.pos]))} after top-level value"
    if error.msg == "Expecting ':' delimiter":
        return f"invalid character {_shown(ord(error.doc[error.pos]))} after object key"
    return f"invalid character {_shown(data[0])} looking for beginning of value"


def _shown(code: int) -> str:
    if code < 0x20 or 0x7F <= code < 0xA0:
        return f"'\\x{code:02x}'" if code < 0x80 else f"'\\u{code:04x}'"
    return f"'{chr(code)}'"
