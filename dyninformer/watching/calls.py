"""One request, from its beginning to the end of its answer, and how any thread can end it."""

from __future__ import annotations

import os
import socket
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from dyninformer.errors import StoppedError
from dyninformer.threads import Bell, in_forked_child


class Wire:
    """A connection's socket: any thread may end what goes on there, nobody else can close it.

    Between TCP and TLS the descriptor passes from one socket object to another that is not
    to be had before the handshake is over; so until `settle` a duplicate is held. After
    that a file on the socket is: as long as that is open, a close elsewhere leaves the
    descriptor as it is. Either way `end` cannot hit a number that has become another
    file's, because only `let_go` frees it, under the same lock.
    """

    def __init__(self, born: socket.socket, wires: Wires) -> None:
        self._lock = threading.RLock()  # guards all below, but _number
        self._number = born.fileno()
        # By its number: a TLS socket refuses `dup`.
        self._socket: socket.socket | None = socket.socket(fileno=os.dup(born.fileno()))
        self._file: Any = None
        self._holders = 1
        self._wires = wires
        in_forked_child(self, "_lock", then=Wire._leave_to_parent)
        try:
            wires.add(self)
        except BaseException:
            self._socket.close()
            raise

    def settle(self, final: object) -> None:
        """The connection is ready, and this is its socket."""
        if not isinstance(final, socket.socket):
            return  # TLS inside TLS, through a proxy: no socket, so the duplicate stays
        with self._lock:
            if self._socket is None:
                return
            duplicate, self._socket = self._socket, final
            self._file = final.makefile("rb", buffering=0)
        duplicate.close()

    def allow_silence(self, seconds: float) -> None:
        """From the next read on, wait so long for a byte."""
        with self._lock:
            if self._file is not None and self._socket is not None:  # it is the one that is read
                self._socket.settimeout(seconds)

    def end(self) -> None:
        """Whoever reads or writes there stops within milliseconds."""
        with self._lock:
            if self._socket is not None:
                with suppress(OSError):  # the other side was faster
                    # The plain method also for TLS: SSLSocket's drops the TLS state under
                    # the reader, who then takes ciphertext for the answer.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def hold(self) -> None:
        """One more needs it: as many `let_go` as there are holders free it."""
        with self._lock:
            self._holders += 1

    def let_go(self) -> None:
        """One less needs it."""
        with self._lock:
            self._holders -= 1
            if self._holders > 0:
                return
            sock, self._socket = self._socket, None
            file, self._file = self._file, None
        if file is not None:
            file.close()
        elif sock is not None:
            sock.close()
        self._wires.discard(self)

    def _leave_to_parent(self) -> None:
        """Close what was inherited, never shut it down: the connection is the parent's."""
        sock, self._socket = self._socket, None
        if sock is None:
            return
        with suppress(OSError):
            if self._file is None and os.path.sameopenfile(self._number, sock.fileno()):
                os.close(self._number)  # in the middle of a handshake; nobody has the object
        with suppress(OSError):
            os.close(sock.detach())


class Wires:
    """All connections of one client, those that lie idle too."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # guards _all and _ended
        self._all: set[Wire] = set()
        self._ended = False
        in_forked_child(self, "_lock", _ended=True, _all=set)

    def __len__(self) -> int:
        with self._lock:
            return len(self._all)

    def add(self, wire: Wire) -> None:
        """A connection begins. Raises after `end`."""
        with self._lock:
            self.check_open()
            self._all.add(wire)

    def check_open(self) -> None:
        """Raise after `end`."""
        if self._ended:
            raise StoppedError("no connection begins any more: the factory was shut down")

    def discard(self, wire: Wire) -> None:
        """It is over."""
        with self._lock:
            self._all.discard(wire)

    def end(self) -> None:
        """End what goes on anywhere, for good; a connect under way fails at once, on Linux."""
        with self._lock:
            self._ended = True
            wires = list(self._all)
        for wire in wires:
            wire.end()


class Call:
    """One request. Its own thread moves it on; any thread may `end` it.

    ``stage`` tells how far it came, ``reused`` that it went over a connection which had lain
    idle. With ``anew`` it goes over none of those. ``answer`` is http.client's, once there is
    one: urllib3 keeps its own to itself.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # guards _wire and _ended
        self._changed = Bell()  # rings at the end, and for results that are waited for
        self._wire: Wire | None = None
        self._ended = False
        self.anew = False
        self.reused = False
        self.stage = "preparing"
        in_forked_child(self, "_lock")
        self.answer: Any = None

    def begin(self) -> None:
        """It is tried from the start."""
        self.reused, self.stage, self.answer = False, "preparing", None

    @property
    def ended(self) -> bool:
        """It was ended from outside."""
        return self._ended

    def use(self, wire: Wire) -> None:
        """It goes over this connection from now on."""
        with self._lock:
            self._check()
            if self._wire is wire:
                return
            wire.hold()
            before, self._wire = self._wire, wire
        if before is not None:
            before.let_go()

    def leave(self) -> None:
        """It needs its connection no more; after this an `end` cannot touch that."""
        with self._lock:
            wire, self._wire = self._wire, None
            self.answer = None  # an idle connection knows its last call
        if wire is not None:
            wire.let_go()

    def allow_silence(self, seconds: float) -> None:
        """From the next read on, wait so long for a byte."""
        with self._lock:
            if self._wire is not None:
                self._wire.allow_silence(seconds)

    def end(self) -> None:
        """Whatever it waits for, it stops. Idempotent, and harmless when it is over."""
        with self._lock:
            self._ended = True
            if self._wire is not None:
                # Under the lock: `leave` comes before another request gets the connection.
                self._wire.end()
        self._changed.ring()

    def wait_for(self, result: Future[Any], /) -> None:
        """Wait for something that is done on another thread."""
        result.add_done_callback(lambda _: self._changed.ring())
        self._changed.wait_for(lambda: result.done() or self._ended)
        self._check()

    def _check(self) -> None:
        if self._ended:
            raise StoppedError("the request was ended, because what it was for has stopped")
