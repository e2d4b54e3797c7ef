"""Work on keys that is tried again when it fails, over the events of informers."""

from dyninformer.work.keys import RateLimited
from dyninformer.work.queue import WorkItem, WorkQueue

__all__ = ["RateLimited", "WorkItem", "WorkQueue"]
