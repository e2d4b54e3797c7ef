"""The query of a LIST, WATCH or GET, parsed and judged as the server does before it looks at data."""

from __future__ import annotations

from dataclasses import dataclass

from dyninformer.testing.cluster.read_settings import ReadSettings
from dyninformer.testing.cluster.resources import Resource
from dyninformer.testing.messages import Request


@dataclass(frozen=True, slots=True)
class ListOptions:
    """What a request asks of a collection, already found valid."""

    watch: bool = False
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    allow_bookmarks: bool = False
    send_initial_events: bool | None = None


def parse_list_options(
    request: Request, resource: Resource, verb: str, settings: ReadSettings
) -> ListOptions:
    """``verb`` is list, watch or deletecollection; raises the ApiError that the server answers."""
    raise NotImplementedError
