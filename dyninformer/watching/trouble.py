"""What kind of trouble an informer can be in, for programs to tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class InformerTrouble(StrEnum):
    """Why an informer is not simply watching; a member compares equal to its text.

    >>> InformerTrouble.FORBIDDEN == "forbidden"
    True
    """

    UNREACHABLE = "unreachable"
    """No answer came, or one that broke off: network, TLS, proxy, credential plugin."""
    UNAUTHORIZED = "unauthorized"
    """401: the credentials were refused."""
    FORBIDDEN = "forbidden"
    """403: whoever this is may not list or watch it."""
    NOT_FOUND = "not-found"
    """404: it does not exist, or is not served at present."""
    CLUSTER_SCOPED = "cluster-scoped"
    """A namespace was given for what has none."""
    BAD_REQUEST = "bad-request"
    """400, 405 or 422: the server refuses what is asked for, such as a selector."""
    OVERLOADED = "overloaded"
    """429: too many requests, or a server that is starting."""
    SERVER_ERROR = "server-error"
    """5xx, or an error in the stream."""
    BAD_ANSWER = "bad-answer"
    """Answers that make no sense, or do not lead anywhere."""
    INTERNAL = "internal"
    """An error in this process that nobody expected; its traceback is in the log."""
    TRANSFORM = "transform"
    """The transform failed on too many objects of the first state."""


@dataclass(frozen=True, slots=True)
class Reason:
    """The kind of trouble, and a sentence on it: what, to which resource, what can be done."""

    trouble: InformerTrouble
    text: str

    def __str__(self) -> str:
        return self.text
