"""Waits that are woken, time out, and leave no lock behind."""

from __future__ import annotations

import signal
import threading

import pytest

from dyninformer.threads import Bell, Deadline, Flag, spawn


def test_a_flag_lets_pass_once_it_is_set() -> None:
    """Who waits, and who comes later; until it is cleared."""
    flag, passed = Flag(), threading.Event()

    def wait() -> None:
        assert flag.wait(10)
        passed.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert not passed.is_set()
    flag.set()
    assert passed.wait(10)
    thread.join()
    assert flag.wait(0)
    flag.clear()
    assert not flag.is_set()
    assert not flag.wait(0)


def test_a_wait_may_be_endless_in_either_spelling() -> None:
    """An infinite one is as good as None, and one that is past is over at once."""
    flag = Flag()
    threading.Timer(0.01, flag.set).start()
    assert flag.wait(float("inf"))
    thread = spawn(None, "waits", lambda: None)
    thread.join(float("inf"))
    thread.join(-1)
    assert not thread.is_alive()


def test_waits_share_a_deadline() -> None:
    """What one has used up the next has not."""
    deadline = Deadline(0.02)
    assert deadline.left is not None
    assert 0 < deadline.left <= 0.02
    assert not deadline.over
    assert not Flag().wait(deadline.left)
    assert deadline.left == 0
    assert deadline.over


def test_a_wait_ends_at_its_timeout() -> None:
    """With what the condition then says; nobody is left to be woken."""
    bell = Bell()
    assert not bell.wait_for(lambda: False, 0.01)
    answers = iter([False, False, True])
    assert bell.wait_for(lambda: next(answers), 0.01)
    bell.ring()


def test_many_who_wait_are_all_woken_by_each_ring() -> None:
    """Each looks at its own condition."""
    bell = Bell()
    done = [0]
    reached: list[int] = []

    def wait(until: int) -> None:
        assert bell.wait_for(lambda: done[0] >= until, 10)
        reached.append(until)

    threads = [threading.Thread(target=wait, args=(1 + number % 5,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        done[0] += 1
        bell.ring()
    for thread in threads:
        thread.join(10)
    assert len(reached) == 50


@pytest.mark.usefixtures("unmeasured")
def test_s23_interrupts_in_a_storm_leave_no_lock_taken() -> None:
    """A real signal, again and again, at whatever bytecode it comes."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals come to the main thread")
    flag, over = Flag(), threading.Event()
    before = signal.signal(signal.SIGUSR2, signal.default_int_handler)
    caught = 0

    def storm() -> None:
        while not over.wait(0.0002):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR2)

    thread = threading.Thread(target=storm)
    try:
        try:
            thread.start()
        except KeyboardInterrupt:
            caught += 1
        while caught < 1000:
            try:
                while True:
                    flag.wait(0)
                    flag.set()
                    flag.clear()
            except KeyboardInterrupt:
                caught += 1
    finally:
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        over.set()
        thread.join()
        signal.signal(signal.SIGUSR2, before)
    woken = threading.Thread(target=flag.set)
    woken.start()
    woken.join(5)
    assert not woken.is_alive()
    assert flag.wait(5)
