"""What the informers of one factory share: the connection, the CRD watch, timers, and an end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dyninformer.delivery.dispatch import Timers
from dyninformer.metrics import NO_METRICS, Metrics, contained
from dyninformer.threads import Deadline
from dyninformer.types import Names
from dyninformer.watching.crds import CrdWatch
from dyninformer.watching.source import Source

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from kubernetes.dynamic import DynamicClient


_GRACE = 0.5


class Shared:
    """One of a factory, or of an informer that stands alone.

    Not for import.
    """

    def __init__(self, source: Source, metrics: Metrics) -> None:
        self.owner = object()
        """Whose code the threads run, see `threads.runs_for`."""
        self.source = source
        self.metrics = contained(metrics)
        self.timers = Timers(self.owner)
        self.crds = CrdWatch(source, owner=self.owner)

    @classmethod
    def connect(
        cls,
        client: DynamicClient | ApiClient | None,
        *,
        kubeconfig: str | os.PathLike[str] | None = None,
        context: str | None = None,
        metrics: Metrics = NO_METRICS,
    ) -> Shared:
        """Find the API server to ask. Nothing is asked of the network."""
        return cls(Source(client, kubeconfig=kubeconfig, context=context), metrics)

    def close(self) -> None:
        """Have all that is shared end, and wait for nothing. Idempotent."""
        self.timers.stop()
        self.crds.stop()
        self.source.close()

    def wait_closed(self, timeout: float | None = None) -> Names:
        """After `close`: the names of what still runs when the time is over."""
        deadline = Deadline(timeout)
        ends = {"dyninformer timers": self.timers.join, "dyninformer CRD watch": self.crds.join}
        left = [name for name, join in ends.items() if not join(deadline.left)]
        # A connect ends in a moment; a name lookup or a plugin may take any time, so that it is
        # named, and not waited for.
        grace = _GRACE if deadline.left is None else min(_GRACE, deadline.left)
        self.source.join(grace)
        return left + self.source.under_way()
