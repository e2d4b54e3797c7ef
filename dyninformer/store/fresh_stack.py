"""Calls that may need more depth than is left on the caller's stack."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def on_fresh_stack(function: Callable[[bytes], Result], data: bytes) -> Result:
    """What the function gives for the bytes, with almost the whole recursion limit to itself.

    What was accepted when it came in, by a thread with some calls on its stack already, can so
    be read by a caller of any depth.
    """
    results: list[Result] = []
    raised: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function(data))
        except BaseException as error:  # noqa: BLE001 - it is raised again, on the caller's thread
            raised.append(error)

    thread = threading.Thread(target=call, name="dyninformer-deep-read", daemon=True)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return results[0]
