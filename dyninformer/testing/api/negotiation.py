"""What the client will read: the Accept header, and who is shown indented JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dyninformer.testing.messages import Request
from dyninformer.testing.status import ApiError

META_GROUP = "meta.k8s.io"
META_VERSIONS = ("v1", "v1beta1")
META_KINDS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")

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


Allows = Callable[[Conversion], bool]


def meta_kinds(conversion: Conversion) -> bool:
    """Collections and objects can be had as tables and as metadata alone."""
    return (
        conversion.group == META_GROUP
        and conversion.version in META_VERSIONS
        and conversion.kind in META_KINDS
    )


def no_conversion(conversion: Conversion) -> bool:  # noqa: ARG001  the signature of every Allows
    """Failures, and answers that have one form."""
    return False


def negotiate(request: Request, allows: Allows = no_conversion, *, watch: bool = False) -> Media:
    """The first clause that can be served, in the client's order of preference.

    Raises the 406 of the real server when there is none.
    """
    indented = wants_indented(request)
    accept = request.headers.get("accept", "")
    if not accept.strip():
        return Media(indented=indented)
    for clause in _clauses(accept):
        found = _serve(clause, allows, indented=indented)
        if found is None:
            continue
        if watch and found.subtype != "json":
            raise not_acceptable(_STREAMED_TEXT)
        return found
    raise not_acceptable(_OFFERED_TEXT)


def not_acceptable(offered: str = _OFFERED_TEXT) -> ApiError:
    """The 406 that names what there is."""
    message = f"only the following media types are accepted: {offered}"
    return ApiError(406, "NotAcceptable", message)


def wants_indented(request: Request) -> bool:
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


def _serve(clause: _Clause, allows: Allows, *, indented: bool) -> Media | None:
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
