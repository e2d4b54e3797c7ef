"""What follows from a refusal, whatever was asked (S28)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from dyninformer.watching import absence, reasons
from dyninformer.watching.answers import Refused
from dyninformer.watching.asking import Turn, back_off, proceed
from dyninformer.watching.effects import ReloadCredentials
from dyninformer.watching.states import Memory


def refused(memory: Memory, refusal: Refused, verb: str, now: float, random: Random) -> Turn:
    """Nothing is for ever: look for proof, read the credentials anew once, or wait."""
    if refusal.status.code == 404:
        return absence.begin(memory, now)
    if refusal.status.code == 401 and not memory.reloaded:
        state, effects = proceed(replace(memory, reloaded=True), now, random)
        return state, (ReloadCredentials(), *effects)
    reason = reasons.refused(memory.scope, verb, refusal.status)
    return back_off(memory, reason, now, random, retry_after=refusal.retry_after)
