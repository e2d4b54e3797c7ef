"""The dict cache, if what its handler gets were the handler's own to change, as ours is."""

from __future__ import annotations

import marshal
import sys

from benchmarks.measuring import Handler, run
from benchmarks.peer_dicts import DictCache
from dyninformer.types import Object


class CopyingCache(DictCache):
    """It gives the old state away, and of the new one, which it keeps, a copy.

    marshal makes that with the fewest instructions of what the standard library has.
    """

    def tell(self, handler: Handler, old: Object, new: Object) -> None:
        """Of an update."""
        handler.on_update(old, marshal.loads(marshal.dumps(new)))


if __name__ == "__main__":
    url, mode, *numbers = sys.argv[1:]
    run(CopyingCache(url, mode), *map(int, numbers))
