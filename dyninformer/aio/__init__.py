"""dyninformer in an event loop: the same names, awaited where they wait.

``from dyninformer import aio``. Works on asyncio, with any loop, and on trio, by itself or under
anyio. What is not here, such as ``Event`` and the errors, is in ``dyninformer``.
"""

from dyninformer.aio.factory import (
    DynamicSharedInformerFactory,
    OpenInformer,
    open_informer,
)
from dyninformer.aio.follow import Follower
from dyninformer.aio.handlers import Registration
from dyninformer.aio.informer import GenericInformer, SharedIndexInformer
from dyninformer.aio.stream import EventStream
from dyninformer.aio.work import WorkQueue

__all__ = [
    "DynamicSharedInformerFactory",
    "EventStream",
    "Follower",
    "GenericInformer",
    "OpenInformer",
    "Registration",
    "SharedIndexInformer",
    "WorkQueue",
    "open_informer",
]
