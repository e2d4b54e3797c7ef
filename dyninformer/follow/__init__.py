"""An informer per resource that matches, as CRDs come and go."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from dyninformer.follow.follower import Follower
from dyninformer.follow.needs import CrdNews, Discovery, Informers, OnEvent
from dyninformer.options import ResourceOptions

__all__ = ["Follower", "follow"]


def follow(
    informers: Informers,
    discovery: Discovery,
    crds: CrdNews,
    patterns: Sequence[str],
    *,
    owner: object,
    on_event: OnEvent | None = None,
    options: ResourceOptions | None = None,
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
    follower = Follower(
        informers, discovery, crds, patterns,
        owner=owner, on_event=on_event, options=options or ResourceOptions(),
    )  # fmt: skip
    follower.start()
    return follower
