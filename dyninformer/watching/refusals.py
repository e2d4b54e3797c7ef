"""What follows from a refusal, whatever was asked (S28)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from dyninformer.watching import absence, reasons
from dyninformer.watching.answers import Refused
from dyninformer.watching.asking import Turn, back_off, proceed
from dyninformer.watching.states import Memory


def refused(memory: Memory, refusal: Refused, verb: str, now: float, random: Random) -> Turn:
    """Nothing is for ever: look for proof, read the credentials anew, or wait.

    They are read anew at once when they have just been found to be no good, and then with each
    try that follows a wait, until an answer is good. A 403 in between is none: that is what a
    server says to whoever shows no credentials at all.
    """
    if refusal.status.code == 404:
        return absence.begin(memory, now)
    if refusal.status.code == 401 and not memory.unauthorized:
        return proceed(replace(memory, unauthorized=True), now, random)
    reason = reasons.refused(memory.scope, verb, refusal.status)
    return back_off(memory, reason, now, random, retry_after=refusal.retry_after)
