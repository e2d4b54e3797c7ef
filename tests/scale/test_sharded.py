"""Whose callbacks are called for objects of shards that come and go (S51, S53)."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

from dyninformer.scale.fences import Ownership, Tenure
from dyninformer.scale.sharded import _Handler

PATIENCE = 30.0


class Watched(Ownership):
    """A shard that says when somebody has looked whether it is ours."""

    def __init__(self) -> None:
        super().__init__("a shard", 0, "me", 1, Tenure(time.monotonic, math.inf))
        self.looks = threading.Semaphore(0)

    def holds(self) -> bool:
        """As it is."""
        found = super().holds()
        self.looks.release()
        return found


def test_s54_a_callback_that_waited_for_its_turn_does_not_begin_on_a_shard_that_is_left() -> None:
    """It was ours when the callback began to wait; what runs is waited for."""
    owner = Watched()
    entered, go_on = threading.Event(), threading.Event()
    heard: list[str] = []

    def hear(obj: dict[str, Any]) -> None:
        heard.append(obj["metadata"]["name"])
        entered.set()
        go_on.wait(PATIENCE)

    tell = _Handler(None, {"on_add": hear}).of({0: owner}, 1)["on_add"]
    threads = [
        threading.Thread(target=tell, args=({"metadata": {"name": name, "uid": name}},))
        for name in ("a", "b")
    ]
    threads[0].start()
    assert entered.wait(PATIENCE)
    assert all(owner.looks.acquire(timeout=PATIENCE) for _ in range(2))
    threads[1].start()
    assert owner.looks.acquire(timeout=PATIENCE)
    owner.close()
    assert not owner.idle
    go_on.set()
    for each in threads:
        each.join(PATIENCE)
    assert heard == ["a"]
    assert owner.idle
