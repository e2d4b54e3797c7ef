"""Which representation a request gets; one of each kind, for as long as the server lives."""

from __future__ import annotations

from dyninformer.testing.api.metadata_only import MetadataOnly
from dyninformer.testing.api.negotiation import Media
from dyninformer.testing.api.tables import Now, Tables, read_include
from dyninformer.testing.cluster.lists import Representation
from dyninformer.testing.messages import Request


class Representations:
    """Plain objects, tables and metadata, made when first asked for and then kept."""

    def __init__(self, plain: Representation, now: Now) -> None:
        self._plain = plain
        self._now = now
        self._made: dict[tuple[str, ...], Representation] = {}

    def of(self, request: Request, media: Media) -> Representation:
        """What was negotiated; the 400 of a table with an unknown includeObject."""
        conversion = media.conversion
        if conversion is None:
            return self._plain
        key: tuple[str, ...] = (conversion.kind, conversion.api_version)
        if conversion.kind == "Table":
            include = read_include(request)
            key = (*key, include)
            if key not in self._made:
                self._made[key] = Tables(conversion.api_version, include, self._plain, self._now)
        elif key not in self._made:
            of_lists = conversion.kind.endswith("List")
            self._made[key] = MetadataOnly(conversion.api_version, of_lists=of_lists)
        return self._made[key]
