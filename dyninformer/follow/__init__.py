"""An informer per resource that matches, as CRDs come and go."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from dyninformer.follow.follower import Follower
from dyninformer.follow.needs import CrdNews, Discovery, Factory, OnEvent
from dyninformer.options import ResourceOptions

__all__ = ["Follower", "follow"]


def follow(
    factory: Factory,
    discovery: Discovery,
    crds: CrdNews,
    patterns: Sequence[str],
    *,
    owner: object,
    on_event: OnEvent | None = None,
    options: Mapping[str, Any] | None = None,
) -> Follower:
    """Begin to follow. What is wrong with the arguments is said here and now."""
    if not patterns or not all(each.strip() for each in patterns):
        raise ValueError(
            "follow needs patterns like '*.cert-manager.io', 'certificates.cert-manager.io', "
            f"or 'cert-manager.io/v1/*'; it was given {list(patterns)!r}"
        )
    if inspect.iscoroutinefunction(on_event):
        raise TypeError(
            f"on_event is a coroutine function ({on_event!r}), which nobody would await here: "
            "use dyninformer.aio"
        )
    ResourceOptions(**(options or {}))
    follower = Follower(
        factory, discovery, crds, patterns,
        owner=owner, on_event=on_event, options=options or {},
    )  # fmt: skip
    follower.start()
    return follower
