"""Why it does not work, in sentences: what, to which resource, and what can be done."""

from __future__ import annotations

from dyninformer.watching.answers import StatusError
from dyninformer.watching.states import Scope

_SHOWN = 300  # characters of what a server says


def refused(scope: Scope, verb: str, status: StatusError) -> str:
    """The server answered, and not with what was asked for.

    >>> from dyninformer.resource import GroupVersionResource
    >>> scope = Scope(gvr=GroupVersionResource("", "v1", "pods"))
    >>> print(refused(scope, "watch", StatusError(429, "TooManyRequests", "busy")))
    cannot watch pods.v1: the server is overloaded or starting (429: busy). It is asked again.
    """
    said = short(status.message)
    cannot = f"cannot {verb} {scope}"
    if status.code == 401:
        return (
            f"{cannot}: the credentials were refused (401: {said}). "
            "Renew them; they are read again before the next try."
        )
    if status.code == 403:
        who = said.split(" is forbidden: ", 1)[-1]
        advice = "" if scope.namespace else ", or pass namespace=... to watch one namespace"
        return f"{cannot}: forbidden ({who}). Give it list and watch{advice}."
    if status.code == 429:
        return f"{cannot}: the server is overloaded or starting (429: {said}). It is asked again."
    if status.code >= 500:
        return f"{cannot}: the server failed ({status.code}: {said}). It is asked again."
    if status.code == 405:
        return f"{cannot}: the resource does not allow it (405: {said})."
    if status.code in (400, 422):
        return (
            f"{cannot}: the server refuses the request ({status.code}: {said}). "
            "Check the selectors."
        )
    return f"{cannot}: unexpected answer ({status.code or 'no code'}: {said}). It is asked again."


def lost(scope: Scope, verb: str, complaint: str) -> str:
    """No answer, or one that broke off."""
    return f"cannot {verb} {scope}: {short(complaint)}. It is asked again."


def in_stream(scope: Scope, status: StatusError) -> str:
    """An ERROR event other than "too old"."""
    code = status.code or status.reason or "no code"
    return f"the stream of {scope} ended with an error ({code}: {short(status.message)})."


def broken(scope: Scope, verb: str, complaint: str) -> str:
    """Bytes that make no sense."""
    return f"cannot {verb} {scope}: the answer is malformed ({complaint}). It is asked again."


def transform_failed(scope: Scope, complaint: str) -> str:
    """The transform raised on an initial state (S17)."""
    return (
        f"cannot take the state of {scope}: {complaint}. "
        "Mend the transform, or have it return dyninformer.DROP for such objects."
    )


def cut(scope: Scope) -> str:
    """A streaming list ended without its mark."""
    return f"cannot list {scope}: the stream of its state ended early. It is asked again."


def unmarked(scope: Scope) -> str:
    """A streaming list whose mark does not come."""
    return (
        f"cannot list {scope}: the stream of its state has no end mark. "
        "The next try is an ordinary list."
    )


def ended_at_once(scope: Scope) -> str:
    """A stream that ended within a second."""
    return f"cannot watch {scope}: the server ends the stream at once. It is asked again."


def expired_at_once(scope: Scope) -> str:
    """Too old, though it was listed just now."""
    return (
        f"cannot watch {scope}: the server calls the version of its own list too old. "
        "It is listed again."
    )


def too_often(scope: Scope) -> str:
    """The budget is spent."""
    return f"{scope} was asked for 60 times within a minute, and nothing new came of it."


def expired_list(scope: Scope) -> str:
    """A list without limit that is too old in the middle."""
    return f"cannot list {scope}: the server calls its own continue token too old."


def older_list(scope: Scope, version: str, held: str) -> str:
    """A list from before what is held (S30)."""
    return (
        f"the server answered for {scope} with version {version}, older than {held}, "
        "which is held. It is asked once more."
    )


def restored(scope: Scope, version: str, held: str) -> str:
    """The server's state is older than ours, for sure."""
    return (
        f"the cluster of {scope} went back from version {held} to {version}: it was restored "
        "from a backup. Its state is taken as it is now."
    )


def no_version(scope: Scope) -> str:
    """A list that nothing can be watched from."""
    return f"cannot watch {scope}: its list has no resourceVersion to start from."


def endless_list(scope: Scope) -> str:
    """A list whose pages lead nowhere."""
    return f"cannot list {scope}: the server gives the same continue token again."


def absent(scope: Scope, proof: str) -> str:
    """Proved to be gone, or not there yet (S33)."""
    return f"{scope} does not exist: {proof}. It is listed as soon as it is there."


def unproved(scope: Scope, found: str) -> str:
    """404, and yet no proof that there is no such resource."""
    return f"cannot list {scope}: not found (404), {found}. What is held is kept meanwhile."


def cluster_scoped(scope: Scope) -> str:
    """A namespace was given for what has none."""
    return (
        f"cannot list {scope}: {scope.gvr.resource} are cluster-scoped, but a namespace was "
        "given. Leave it out."
    )


def short(text: str) -> str:
    """One line of what somebody else says, without its full stop, control characters visible."""
    line = " ".join(text.split()).rstrip(".")
    line = "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in line)
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
