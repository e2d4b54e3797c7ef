"""Whether a collection can be listed and watched, and in which ways."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dyninformer.cli.findings import Finding, denied, failed_by, ok, warn
from dyninformer.cli.probes import Listed, Probes, Refusal
from dyninformer.display.text import visible
from dyninformer.errors import UnreachableError
from dyninformer.watching.frames import BrokenFrameError

_SLOW_SECONDS: Final = 5.0
_NO_STREAMING_LIST: Final = (400, 405, 422)
_BUFFERED: Final = (
    "Something on the way to the server may hold answers back: switch off its response buffering."
)
_PAGES: Final = (
    "Nothing: lists come in pages of 500. From Kubernetes 1.34 on (feature gate WatchList) a "
    "streaming list costs the server less."
)


class StreamChecks:
    """The checks of one collection; ``version`` is that of its list, to watch from."""

    def __init__(self, probes: Probes, namespace: str) -> None:
        self._probes = probes
        self._where = f" in namespace {visible(namespace)}" if namespace else ""
        self.version = ""

    def listing(self) -> Iterator[Finding]:
        """A list of one item."""
        try:
            found = self._probes.list_one()
        except UnreachableError as error:
            yield failed_by("list", error)
            return
        if isinstance(found, Refusal):
            yield denied("list", f"it cannot be listed{self._where}", *found)
            return
        self.version = found.version
        told = f"{_number(found)}{self._where}; {found.size:,} bytes in {found.seconds:.2f} s"
        if found.seconds > _SLOW_SECONDS:
            fix = "Look at the load of the API server and at the network on the way to it."
            yield warn("list", f"slow: {told}", fix)
        else:
            yield ok("list", told)

    def watching(self) -> Iterator[Finding]:
        """A watch from the list's version, as informers go on for the rest of their lives."""
        try:
            with self._probes.watched(self.version, 1) as reply:
                if isinstance(reply, Refusal):
                    yield denied("watch", f"it cannot be watched{self._where}", *reply)
                    return
        except UnreachableError as error:
            yield failed_by("watch", error)
            return
        yield ok("watch", f"accepted{self._where}")
        yield from self._streaming_list()

    def _streaming_list(self) -> Iterator[Finding]:
        try:
            with self._probes.streamed_state() as lines:
                if isinstance(lines, Refusal):
                    if lines.status in _NO_STREAMING_LIST:
                        found = f"not offered ({lines.status}); ordinary lists are used"
                        yield warn("streaming list", found, _PAGES)
                    else:
                        yield denied("streaming list", "it is refused", *lines)
                elif any(line.is_mark for line in lines):
                    yield ok("streaming list", "offered; its end mark came")
                    yield ok("bookmarks", "they come")
                    return
                else:
                    found = "its end mark did not come; ordinary lists are used"
                    yield warn("streaming list", found, _PAGES)
        except (UnreachableError, BrokenFrameError) as error:
            yield warn("streaming list", str(error), _BUFFERED)
        yield warn(
            "bookmarks",
            "not seen yet: servers send them once a minute, and only if there is news",
            "See whether they come with --watch-for 150. Without bookmarks, a watch that has "
            "been quiet for long must list again after an interruption.",
        )


def _number(found: Listed) -> str:
    if found.remaining is not None:
        return f"{found.items + found.remaining:,} objects"
    return f"{found.items} object{'' if found.items == 1 else 's'}"
