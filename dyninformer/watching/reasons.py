"""Why it does not work, in sentences: what, to which resource, and what can be done."""

from __future__ import annotations

from dyninformer.transport.requests import short
from dyninformer.watching.states import Scope, StatusError, Taken
from dyninformer.watching.status import InformerTrouble, Reason

_AGAIN = " It is asked again."


def refused(scope: Scope, verb: str, status: StatusError) -> Reason:
    """The server answered, and not with what was asked for.

    >>> from dyninformer.resource import GroupVersionResource
    >>> scope = Scope(gvr=GroupVersionResource("", "v1", "pods"))
    >>> print(refused(scope, "watch", StatusError(429, "TooManyRequests", "busy")))
    cannot watch pods.v1: the server is overloaded or starting (429: busy). It is asked again.
    """
    trouble, why = _refusal(scope, status.code, short(status.message))
    return Reason(trouble, f"cannot {verb} {scope}: {why}")


def not_audited(scope: Scope, status: StatusError) -> str:
    """The server did not give the list that an audit asked for.

    >>> from dyninformer.resource import GroupVersionResource
    >>> scope = Scope(gvr=GroupVersionResource("", "v1", "pods"))
    >>> not_audited(scope, StatusError(429, "TooManyRequests", "busy"))
    'cannot audit pods.v1: the server is overloaded or starting (429: busy).'
    """
    said = short(status.message)
    if status.code == 404:
        why = f"the server does not serve it at present (404: {said})."
    else:
        why = _refusal(scope, status.code, said)[1].removesuffix(_AGAIN)
    return f"cannot audit {scope}: {why}"


def _refusal(scope: Scope, code: int, said: str) -> tuple[InformerTrouble, str]:
    if code == 401:
        return InformerTrouble.UNAUTHORIZED, (
            f"the credentials were refused (401: {said}). "
            "Renew them; they are read again with the next tries."
        )
    if code == 403:
        who = said.split(" is forbidden: ", 1)[-1]
        if scope.without_right:
            advice = f"This right is optional. {scope.without_right}"
            return InformerTrouble.FORBIDDEN, f"forbidden ({who}). {advice}"
        advice = "" if scope.namespace else ", or pass namespace=... to watch one namespace"
        return InformerTrouble.FORBIDDEN, f"forbidden ({who}). Give it list and watch{advice}."
    if code == 429:
        return InformerTrouble.OVERLOADED, (
            f"the server is overloaded or starting (429: {said}).{_AGAIN}"
        )
    if code >= 500:
        return (
            InformerTrouble.SERVER_ERROR,
            f"the server failed ({code}: {said}).{_AGAIN}",
        )
    if code == 405:
        return InformerTrouble.BAD_REQUEST, f"the resource does not allow it (405: {said})."
    if code in (400, 422):
        return InformerTrouble.BAD_REQUEST, (
            f"the server refuses the request ({code}: {said}). Check the selectors."
        )
    return InformerTrouble.BAD_ANSWER, (f"unexpected answer ({code or 'no code'}: {said}).{_AGAIN}")


def lost(scope: Scope, verb: str, complaint: str) -> Reason:
    """No answer, or one that broke off."""
    return Reason(
        InformerTrouble.UNREACHABLE,
        f"cannot {verb} {scope}: {short(complaint)}. It is asked again.",
    )


def in_stream(scope: Scope, status: StatusError) -> Reason:
    """An ERROR event other than "too old"."""
    code = status.code or status.reason or "no code"
    return Reason(
        InformerTrouble.SERVER_ERROR,
        f"the stream of {scope} ended with an error ({code}: {short(status.message)}).",
    )


def broken(scope: Scope, verb: str, complaint: str) -> Reason:
    """Bytes that make no sense."""
    return Reason(
        InformerTrouble.BAD_ANSWER,
        f"cannot {verb} {scope}: the answer is malformed ({complaint}). It is asked again.",
    )


def untransformed(scope: Scope, taken: Taken) -> str:
    """The transform failed on a few (S17)."""
    return (
        f"{taken.failed} of {taken.objects} objects of {scope} that came stay as they were held, "
        f"or are left out: {short(taken.failure)}"
    )


def transform_failed(scope: Scope, taken: Taken) -> Reason:
    """The transform failed on too much of a first state (S17)."""
    return Reason(
        InformerTrouble.TRANSFORM,
        f"cannot take the state of {scope}: {short(taken.failure)} (and so on "
        f"{taken.failed} of {taken.objects} objects). "
        "Fix the transform, or have it return dyninformer.DROP for such objects.",
    )


def crashed(scope: Scope, complaint: str) -> Reason:
    """An error on our own side, see `states.Crashed`."""
    return Reason(
        InformerTrouble.INTERNAL,
        f"the reflector of {scope} failed ({short(complaint)}), see the log. It lists again.",
    )


def cut(scope: Scope) -> Reason:
    """A streaming list ended without its mark."""
    return Reason(
        InformerTrouble.BAD_ANSWER,
        f"cannot list {scope}: the stream of its state ended early. It is asked again.",
    )


def unmarked(scope: Scope) -> Reason:
    """A streaming list whose mark does not come."""
    return Reason(
        InformerTrouble.BAD_ANSWER,
        f"cannot list {scope}: the stream of its state has no end mark. "
        "The next try is an ordinary list.",
    )


def ended_at_once(scope: Scope) -> Reason:
    """A stream that ended within a second."""
    return Reason(
        InformerTrouble.BAD_ANSWER,
        f"cannot watch {scope}: the server ends the stream at once. It is asked again.",
    )


def expired_at_once(scope: Scope) -> Reason:
    """Too old, though it was listed just now."""
    return Reason(
        InformerTrouble.BAD_ANSWER,
        f"cannot watch {scope}: the server calls the version of its own list too old. "
        "It is listed again.",
    )


def too_often(scope: Scope) -> Reason:
    """The budget is spent."""
    return Reason(
        InformerTrouble.BAD_ANSWER,
        f"{scope} was asked for 60 times within a minute, and nothing new came of it.",
    )


def expired_list(scope: Scope) -> Reason:
    """A list without limit that is too old in the middle."""
    return Reason(
        InformerTrouble.BAD_ANSWER,
        f"cannot list {scope}: the server calls its own continue token too old.",
    )


def older_list(scope: Scope, version: str, held: str) -> Reason:
    """A list from before what is held (S30)."""
    return Reason(
        InformerTrouble.BAD_ANSWER,
        f"the server answered for {scope} with version {version}, older than {held}, "
        "which is held. It is asked once more.",
    )


def restored(scope: Scope, version: str, held: str) -> str:
    """The server's state is older than ours, for sure."""
    return (
        f"the cluster of {scope} went back from version {held} to {version}: it was restored "
        "from a backup. Its state is taken as it is now."
    )


def other_past(scope: Scope) -> str:
    """What the server says has happened is not what we were told."""
    return (
        f"the cluster of {scope} has another past than what is held: it was restored from a backup "
        "and written to since. Its state is taken as it is now."
    )


def no_version(scope: Scope) -> Reason:
    """A list that nothing can be watched from."""
    return Reason(
        InformerTrouble.BAD_ANSWER,
        f"cannot watch {scope}: its list has no resourceVersion to start from.",
    )


def endless_list(scope: Scope) -> Reason:
    """A list whose pages lead nowhere."""
    return Reason(
        InformerTrouble.BAD_ANSWER,
        f"cannot list {scope}: page follows page, and the list does not end: they bring nothing "
        "new, or more than the server said there is. It is asked again.",
    )


def circular_list(scope: Scope) -> Reason:
    """A page whose continue token is the one it was asked with."""
    return Reason(
        InformerTrouble.BAD_ANSWER,
        f"cannot list {scope}: the server gives the same continue token again.",
    )


def absent(scope: Scope, proof: str) -> Reason:
    """Proved to be gone, or not there yet (S33)."""
    return Reason(
        InformerTrouble.NOT_FOUND,
        f"{scope} does not exist: {proof}. It is listed as soon as it is there.",
    )


def unproved(scope: Scope, found: str) -> Reason:
    """404, and yet no proof that there is no such resource."""
    return Reason(
        InformerTrouble.NOT_FOUND,
        f"cannot list {scope}: not found (404), {found}. What is held is kept meanwhile.",
    )


def cluster_scoped(scope: Scope) -> Reason:
    """A namespace was given for what has none."""
    return Reason(
        InformerTrouble.CLUSTER_SCOPED,
        f"cannot list {scope}: {scope.gvr.resource} are cluster-scoped, but a namespace was "
        "given. Leave it out.",
    )
