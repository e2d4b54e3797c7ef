"""Which contexts of the kubeconfig a fleet is of, and whether those have changed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from dyninformer.checked import checked_texts
from dyninformer.errors import ConfigError, StoppedError
from dyninformer.threads import Flag
from dyninformer.transport.config import KubeconfigFiles, contexts_in, find_configuration

Servers: TypeAlias = dict[str, str]
"""The server's address by the name of the context."""
Stamp: TypeAlias = tuple[tuple[int, int, int] | None, ...]
Kubeconfig: TypeAlias = str | os.PathLike[str] | None

LOOK_SECONDS: Final = 1.0
"""Between two looks at when the kubeconfig was written."""
GONE_LOOKS: Final = 10
"""One of several files that is not there at so many looks is read as kubectl reads it: not at all.
Before that it may be about to be written anew."""

_logger = logging.getLogger("dyninformer")
_GIVE: Final = "names or patterns of contexts, such as ['eu-*', 'us-1']"


class Contexts:
    """The contexts of the kubeconfig that fit patterns; for one thread at a time.

    >>> from dyninformer.testing import ApiServer
    >>> with ApiServer() as server:
    ...     len(Contexts("*", server.kubeconfig()).found())
    1
    """

    def __init__(self, patterns: Iterable[str] | str, kubeconfig: Kubeconfig) -> None:
        self.patterns = checked_texts("contexts", patterns, _GIVE)
        if not self.patterns:
            raise ValueError(f"contexts is empty: give {_GIVE}")
        self._kubeconfig = kubeconfig
        self._seen: Stamp = ()
        self._there: tuple[str, ...] = ()  # the files that were read last
        self._gone: dict[str, int] = {}  # those of them that have gone, and at how many looks

    def found(self) -> Servers:
        """Those that fit now, in the order of the kubeconfig.

        Raises `ConfigError` if there is no kubeconfig, or none that can be read, and for some time
        if one of several files is there no more.
        """
        # Before it is read: what changes while it is read is seen the next time.
        stamp = self._stamp()
        place = find_configuration(self._kubeconfig, None, environment=os.environ, in_a_pod=False)
        assert isinstance(place, KubeconfigFiles)  # noqa: S101 - the pod was left out
        listed = _paths(self._kubeconfig, os.environ)
        gone = [path for path in self._there if path in listed and path not in place.paths]
        self._gone = {path: self._gone.get(path, 0) + 1 for path in gone}
        for path, looks in self._gone.items():
            if looks <= GONE_LOOKS:  # it says nothing of the clusters that it had
                raise ConfigError(
                    f"{path} is gone: if it stays away for {GONE_LOOKS * LOOK_SECONDS:g} s, so are "
                    "its contexts"
                )
        found = {
            name: server
            for name, server in contexts_in(place).items()
            if any(fnmatchcase(name, each) for each in self.patterns)
        }
        self._seen, self._there = stamp, place.paths
        return found

    def first(self) -> Servers:
        """The same, for the beginning: each pattern has to fit something, else `ConfigError`."""
        found = self.found()
        for each in self.patterns:
            if not any(fnmatchcase(name, each) for name in found):
                raise ConfigError(self._nothing(each))
        return found

    def changed(self) -> bool:
        """Whether a file is another than it was at the last look that went well.

        It looks at no more than when the files were written: two microseconds for each.
        """
        return self._stamp() != self._seen

    def follow(self, take: Callable[[Servers], None], stopped: Flag) -> None:
        """Have ``take`` called with what is found, whenever that may have changed, to the end.

        A kubeconfig that is half written, or gone, tells nothing of any cluster: it is said once,
        and what comes after it counts.
        """
        complaint, last = "", self._seen
        while not stopped.wait(LOOK_SECONDS):
            before, last = last, self._stamp()
            if last == self._seen:
                self._gone = {}  # all are there again, as they were
                continue
            if last != before:
                continue  # what has changed since the last look may be half written
            try:
                take(self.found())
                complaint = ""
            except StoppedError:
                return
            except ConfigError as error:
                if str(error) != complaint:
                    complaint = str(error)
                    _logger.warning("fleet: the kubeconfig has changed, and %s", error)
            except Exception:  # whatever it was, the next kubeconfig may be better
                self._seen = ()
                _logger.exception("fleet: the kubeconfig has changed, and cannot be followed")

    def __str__(self) -> str:
        return ", ".join(self.patterns)

    def _nothing(self, pattern: str) -> str:
        place = find_configuration(self._kubeconfig, None, environment=os.environ, in_a_pod=False)
        assert isinstance(place, KubeconfigFiles)  # noqa: S101 - as above
        names = ", ".join(sorted(contexts_in(place))) or "none"
        return f"no context of {place} fits {pattern!r}; it has: {names}"

    def _stamp(self) -> Stamp:
        return tuple(map(_written, _paths(self._kubeconfig, os.environ)))


def _paths(kubeconfig: Kubeconfig, environment: Mapping[str, str]) -> list[str]:
    """All files that may be read, also those that are not there yet."""
    listed = os.fspath(kubeconfig) if kubeconfig is not None else environment.get("KUBECONFIG")
    given = listed or os.path.join("~", ".kube", "config")
    return [os.path.expanduser(path) for path in given.split(os.pathsep) if path]


def _written(path: str) -> tuple[int, int, int] | None:
    """When a file was written, its size, and which one it is; None if it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
