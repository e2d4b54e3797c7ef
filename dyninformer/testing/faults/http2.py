"""Faults in the frames of HTTP/2: the stream that carries an answer, and its whole connection."""

from __future__ import annotations

from dataclasses import dataclass, replace

from h2.errors import ErrorCodes

from dyninformer.testing.faults.injection import Fault, Intervention
from dyninformer.testing.messages import ConnectionStep, Ending, is_stream


@dataclass(frozen=True, slots=True)
class ResetStream(Fault):
    """The HTTP/2 stream is reset with ``code``; the other streams of the connection go on.

    This happens before the request is handled, or ``after_lines`` of a watch. A code of 7
    (``h2.errors.ErrorCodes.REFUSED_STREAM``) says that the request was not handled. Over HTTP/1.1
    the connection is closed.
    """

    code: int = ErrorCodes.INTERNAL_ERROR
    after_lines: int | None = None

    def before(self, intervention: Intervention) -> None:
        """Reset it instead of handling the request, unless lines come first."""
        intervention.plan.reset_code = self.code
        if self.after_lines is None:
            intervention.instead((Ending.RESET_STREAM,))

    def after(self, intervention: Intervention) -> None:
        """Reset it after some lines of a watch."""
        intervention.plan.reset_code = self.code
        if self.after_lines is not None:
            intervention.after_lines(self.after_lines, (Ending.RESET_STREAM,))

    def for_open_watch(self) -> Fault:
        """Reset it at once, or after some lines."""
        return replace(self, after_lines=self.after_lines or 0)


@dataclass(frozen=True, slots=True)
class GoAway(Fault):
    """The HTTP/2 connection of the request gets a GOAWAY, as from ``--goaway-chance``.

    The streams that are open go on, and the connection is closed when they have ended. The server
    ignores streams that the client opens on it later. With ``handled=False`` the request itself
    is above the last stream id of the GOAWAY, so it is not handled. With ``after_lines`` the
    GOAWAY follows some lines of a watch. Over HTTP/1.1 nothing happens.
    """

    after_lines: int | None = None
    handled: bool = True

    def before(self, intervention: Intervention) -> None:
        """Leave the request unhandled, if it should be."""
        if not self.handled and _over_http2(intervention):
            intervention.instead((ConnectionStep.GO_AWAY_BEFORE,))

    def after(self, intervention: Intervention) -> None:
        """Send it before the answer, or between the lines of a watch."""
        if self.handled:
            _change_connection(intervention, ConnectionStep.GO_AWAY, self.after_lines)

    def for_open_watch(self) -> Fault:
        """Send it at once, or after some lines."""
        if not self.handled:
            raise ValueError("an open watch is handled already: leave out handled=False")
        return self


@dataclass(frozen=True, slots=True)
class IgnorePings(Fault):
    """The server answers no PING on the HTTP/2 connection of the request from then on.

    Everything else goes on. Over HTTP/1.1 nothing happens.
    """

    def after(self, intervention: Intervention) -> None:
        """Change the connection before the answer is sent."""
        _change_connection(intervention, ConnectionStep.IGNORE_PINGS, None)

    def for_open_watch(self) -> Fault:
        """Act as on a new watch."""
        return self


@dataclass(frozen=True, slots=True)
class FreezeConnection(Fault):
    """The connection of the request stays open, and the server sends nothing more on it.

    All its streams fall silent, and no PING is answered. The request is not handled; with
    ``after_lines`` this follows some lines of a watch.
    """

    after_lines: int | None = None

    def before(self, intervention: Intervention) -> None:
        """Freeze it instead of handling the request, unless lines come first."""
        if self.after_lines is None:
            intervention.instead((ConnectionStep.FREEZE, Ending.SILENCE))

    def after(self, intervention: Intervention) -> None:
        """Freeze it after some lines of a watch."""
        if self.after_lines is not None:
            steps = (ConnectionStep.FREEZE, Ending.SILENCE)
            intervention.after_lines(self.after_lines, steps)

    def for_open_watch(self) -> Fault:
        """Freeze it at once, or after some lines."""
        return replace(self, after_lines=self.after_lines or 0)


def _over_http2(intervention: Intervention) -> bool:
    return intervention.received.request.http_version == "2"


def _change_connection(
    intervention: Intervention, step: ConnectionStep, after_lines: int | None
) -> None:
    """Change the connection before the answer, or between the lines of a watch."""
    if not _over_http2(intervention):
        return
    if is_stream(intervention.plan.answer):
        intervention.after_lines(after_lines or 0, (step,))
    elif after_lines is None:
        intervention.plan.opening += (step,)
        intervention.hit()
