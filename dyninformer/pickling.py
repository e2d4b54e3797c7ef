"""Parts of a cache, which cannot leave their process, and say what can."""

from __future__ import annotations

from typing import ClassVar, NoReturn, Self, SupportsIndex


class NotPickled:
    """Refuse to be pickled or copied deeply, and name what to send to another process.

    Not for import.
    """

    __slots__ = ()
    send_instead: ClassVar[str]

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        del protocol
        name = type(self).__name__
        raise TypeError(
            f"{'an' if name[0] in 'AEIOU' else 'a'} {name} cannot be pickled: it shares the "
            f"compressed objects of a cache. Send {self.send_instead} to the other process"
        )

    def __copy__(self) -> Self:
        return self
