"""What the client will read, and answers in that form: JSON, YAML, indented, compressed, refused.

`negotiate` reads the Accept header; the rest makes Responses of what was agreed on.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from unicodedata import category

from dyninformer.testing.api.encoding import encode, pretty, write_yaml
from dyninformer.testing.messages import Headers, Request, Response
from dyninformer.testing.status import ApiError
from dyninformer.types import Object

_META_GROUP = "meta.k8s.io"
_META_VERSIONS = ("v1", "v1beta1")
_META_KINDS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")

_OFFERED = ("json", "yaml")
_OFFERED_TEXT = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_STREAMED_TEXT = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
_INDENTED_AGENTS = ("curl", "Wget", "Mozilla/5.0")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")


@dataclass(frozen=True, slots=True)
class Conversion:
    """The ``as``, ``g`` and ``v`` of a media type: another kind than the stored one."""

    kind: str
    group: str = ""
    version: str = ""

    @property
    def api_version(self) -> str:
        """The group and version that the converted object names."""
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True, slots=True)
class Media:
    """What was agreed on."""

    subtype: str = "json"
    conversion: Conversion | None = None
    indented: bool = False

    @property
    def content_type(self) -> str:
        """The answer's Content-Type; what is converted does not show in it."""
        return f"application/{self.subtype}"


_Allows = Callable[[Conversion], bool]


def meta_kinds(conversion: Conversion) -> bool:
    """Collections and objects are also served as tables and as metadata alone."""
    return (
        conversion.group == _META_GROUP
        and conversion.version in _META_VERSIONS
        and conversion.kind in _META_KINDS
    )


def _no_conversion(conversion: Conversion) -> bool:  # noqa: ARG001  the signature of every _Allows
    """Failures, and answers that have one form."""
    return False


def negotiate(request: Request, allows: _Allows = _no_conversion, *, watch: bool = False) -> Media:
    """The first clause that can be served, in the client's order of preference.

    Raises the 406 of the real server when there is none.
    """
    indented = _wants_indented(request)
    accept = request.headers.get("accept", "")
    if not accept.strip():
        return Media(indented=indented)
    for clause in _clauses(accept):
        found = _serve(clause, allows, indented=indented)
        if found is None:
            continue
        if watch and found.subtype != "json":
            raise _not_acceptable(_STREAMED_TEXT)
        return found
    raise _not_acceptable(_OFFERED_TEXT)


def _not_acceptable(offered: str = _OFFERED_TEXT) -> ApiError:
    """The 406 that names what there is."""
    message = f"only the following media types are accepted: {offered}"
    return ApiError(406, "NotAcceptable", message)


def _wants_indented(request: Request) -> bool:
    """``pretty`` decides if it says anything; browsers, curl and wget are read by people."""
    asked = request.param("pretty")
    if asked:
        return asked in _TRUE
    return request.headers.get("user-agent", "").startswith(_INDENTED_AGENTS)


@dataclass(frozen=True, slots=True)
class _Clause:
    type: str
    subtype: str
    parameters: dict[str, str]
    quality: float


def _clauses(accept: str) -> list[_Clause]:
    found = []
    for part in accept.split(","):
        media, *rest = (piece.strip() for piece in part.split(";"))
        type_, _, subtype = media.partition("/")
        pairs = (piece.partition("=") for piece in rest)
        parameters = {name.strip(): value.strip() for name, _, value in pairs}
        quality = _quality(parameters.pop("q", "1"))
        found.append(_Clause(type_.strip(), subtype.strip() or "*", parameters, quality))
    found.sort(key=lambda clause: (-clause.quality, clause.type == "*", clause.subtype == "*"))
    return found


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


def _serve(clause: _Clause, allows: _Allows, *, indented: bool) -> Media | None:
    if clause.type not in ("application", "*"):
        return None
    subtype = next((s for s in _OFFERED if clause.subtype in (s, "*")), None)
    if subtype is None:
        return None
    parameters = clause.parameters
    if parameters.get("stream", "watch") not in ("", "watch"):
        return None
    conversion = None
    if parameters.keys() & {"as", "g", "v"}:
        conversion = Conversion(
            parameters.get("as", ""), parameters.get("g", ""), parameters.get("v", "")
        )
        if not allows(conversion):
            return None
    indented = indented or parameters.get("pretty") == "1"
    return Media(subtype, conversion, indented)


PRIVATE: Headers = (("Cache-Control", "no-cache, private"),)
NOSNIFF: Headers = (("X-Content-Type-Options", "nosniff"),)
_TEXT = "text/plain; charset=utf-8"
_JOINED = 64 * 1024
_COMPRESS_ABOVE = 128 * 1024
_INDENTED_JSON = Media(indented=True)


def text_response(text: str, status: int = 200, headers: Headers = NOSNIFF) -> Response:
    """Plain text."""
    return Response(status, (*PRIVATE, ("Content-Type", _TEXT), *headers), text.encode())


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
    body = _rendered([encode(document, sort=False), b"\n"], media)
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
    body = _rendered(made, media)
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


def _rendered(pieces: Iterable[bytes], media: Media) -> bytes:
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
