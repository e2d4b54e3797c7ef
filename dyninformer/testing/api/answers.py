"""Responses: JSON, YAML, indented, compressed, and failures in the form the client reads."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from unicodedata import category

from dyninformer.testing.api.encoding import encode, pretty
from dyninformer.testing.api.negotiation import Media, negotiate
from dyninformer.testing.api.yaml_text import write_yaml
from dyninformer.testing.messages import Headers, Request, Response
from dyninformer.testing.status import ApiError
from dyninformer.types import Object

PRIVATE: Headers = (("Cache-Control", "no-cache, private"),)
NOSNIFF: Headers = (("X-Content-Type-Options", "nosniff"),)
TEXT = "text/plain; charset=utf-8"
_JOINED = 64 * 1024
_COMPRESS_ABOVE = 128 * 1024
_INDENTED_JSON = Media(indented=True)


def text_response(text: str, status: int = 200, headers: Headers = NOSNIFF) -> Response:
    """Plain text."""
    return Response(status, (*PRIVATE, ("Content-Type", TEXT), *headers), text.encode())


def document_response(
    document: Object,
    media: Media,
    status: int = 200,
    headers: Headers = (),
    *,
    cache: Headers = PRIVATE,
    content_type: str = "",
) -> Response:
    """An object whose keys are in the order in which they are to be sent."""
    body = rendered([encode(document, sort=False), b"\n"], media)
    head = (*cache, ("Content-Type", content_type or media.content_type), *headers)
    return Response(status, head, body)


def bytes_response(
    request: Request,
    pieces: Iterable[bytes],
    media: Media,
    status: int = 200,
    headers: Headers = (),
) -> Response:
    """A body that is JSON already, in pieces, its newline included; compressed if that is asked.

    The pieces are made here, so that whatever fails fails before the answer begins. Those
    of a large body are not joined unless it is turned into YAML, indented or compressed.
    """
    head = (*PRIVATE, ("Content-Type", media.content_type), *headers)
    made = tuple(pieces)
    plain = media.subtype == "json" and not media.indented
    if plain and not _takes_gzip(request) and sum(map(len, made)) > _JOINED:
        return Response(status, head, made)
    body = rendered(made, media)
    if _takes_gzip(request) and len(body) > _COMPRESS_ABOVE:
        packed = (("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))
        return Response(status, (*head, *packed), gzip.compress(body, 1, mtime=0))
    return Response(status, head, body)


def error_response(request: Request, error: ApiError) -> Response:
    """A failure in the form the client reads; if it reads none, as indented JSON."""
    headers: Headers = (*warning_headers(error.warnings), *error.headers)
    if error.retry_after is not None:
        headers = (("Retry-After", str(error.retry_after)), *headers)
    if error.text is not None:
        response = text_response(error.text, error.code, headers)
    else:
        try:
            media = negotiate(request)
        except ApiError:
            media = _INDENTED_JSON
        response = document_response(error.body(), media, error.code, headers)
    return Response(response.status, response.headers, response.body, delay=error.delay)


def warning_headers(warnings: Iterable[str]) -> Headers:
    """One Warning header for each text that a header can hold: one without control characters."""
    return tuple(
        ("Warning", f"299 - {_quoted(text)}")
        for text in warnings
        if not any(category(each) == "Cc" for each in text)
    )


def method_not_allowed() -> ApiError:
    """The 405 of built-in paths."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, details={})


def nothing_there() -> ApiError:
    """The 404 of paths under the API of built-in groups."""
    message = "the server could not find the requested resource"
    return ApiError(404, "NotFound", message, details={})


def rendered(pieces: Iterable[bytes], media: Media) -> bytes:
    """Compact JSON as ``media`` wants it."""
    body = b"".join(pieces)
    if media.subtype == "yaml":
        return write_yaml(json.loads(body))
    return pretty(body).rstrip(b"\n") if media.indented else body


def _takes_gzip(request: Request) -> bool:
    accepted = request.headers.get("accept-encoding", "")
    return "gzip" in accepted and any(part.strip() == "gzip" for part in accepted.split(","))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
