"""dyninformer as in own_informer.py, with what it holds not compressed."""

from __future__ import annotations

import sys

from benchmarks.measuring import Handler, run
from benchmarks.own_informer import CERTIFICATES, INDEXERS, Informer


class Plain(Informer):
    """The same, but for the entries."""

    def sync(self, handler: Handler) -> None:
        """Sync all certificates."""
        self.factory.for_resource(CERTIFICATES, indexers=INDEXERS, compress=False)
        super().sync(handler)


if __name__ == "__main__":
    url, _, *numbers = sys.argv[1:]
    run(Plain(url), *map(int, numbers))
