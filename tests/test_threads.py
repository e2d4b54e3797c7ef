"""Waits that are woken, time out, and leave no lock behind."""

from __future__ import annotations

import _thread
import threading
import time

import pytest

from dyninformer.threads import Bell, Bells, Deadline, Flag, ReentrantLock, spawn, unbroken
from tests.interrupts import storm


@pytest.mark.usefixtures("unmeasured")
def test_an_interrupt_as_a_lock_is_taken_leaves_it_free() -> None:
    """S23: whether it comes as the lock is waited for, or when it was just taken."""
    lock = ReentrantLock()
    for _ in range(20):
        held, waits = threading.Event(), threading.Event()

        def free(held: threading.Event = held, waits: threading.Event = waits) -> None:
            with lock:
                held.set()
                waits.wait(10)
                time.sleep(0.002)  # by then the main thread waits for the lock, or soon does
            _thread.interrupt_main()

        thread = threading.Thread(target=free)
        thread.start()
        assert held.wait(10)
        interrupts = 0
        try:
            waits.set()
            with lock:
                pass
            thread.join()
        except KeyboardInterrupt:
            interrupts += 1
        thread.join()
        assert interrupts == 1
        assert another_can_take(lock)


@pytest.mark.usefixtures("unmeasured")
def test_what_was_taken_is_told_before_an_interrupt_is() -> None:
    """S23: one that comes while a function of C does its work."""
    lock = threading.Lock()
    told: object = None
    interrupting = zip(iter(_thread.interrupt_main, 0), iter(lock.acquire, False), strict=True)

    def take() -> None:
        nonlocal told
        told = unbroken(interrupting.__next__)
        time.sleep(0)  # where it is heard

    with pytest.raises(KeyboardInterrupt):
        take()
    assert lock.locked()
    assert told == (None, True)


def another_can_take(lock: threading.RLock) -> bool:
    """Whether another thread can take it."""
    taken: list[bool] = []

    def take() -> None:
        if lock.acquire(timeout=10):
            taken.append(True)
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return bool(taken)


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
    deadline = Deadline(0.5)
    assert deadline.left is not None
    assert 0 < deadline.left <= 0.5
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


def test_of_several_bells_any_wakes_and_those_that_come_are_waited_at_too() -> None:
    """Two that ring at a time wake a thread once; nothing is left at any of them."""
    coming, one, other = Bell(), Bell(), Bell()
    bells, done, looks = [coming, one], [False], 0
    asleep = threading.Barrier(2)

    def is_done() -> bool:
        nonlocal looks
        looks += 1
        found = done[0]
        if looks in {2, 4}:  # the second look of a wait: it sleeps next
            asleep.wait(10)
        return found

    both = Bells(lambda: iter(bells))
    thread = threading.Thread(target=lambda: both.wait_for(is_done, 10))
    thread.start()
    asleep.wait(10)
    bells.append(other)
    one.ring()
    coming.ring()
    asleep.wait(10)
    done[0] = True
    other.ring()
    other.ring()
    thread.join(10)
    assert not thread.is_alive()
    assert looks >= 5
    assert not [each for each in bells if each._sleepers]


@pytest.mark.usefixtures("unmeasured")
def test_s23_interrupts_in_a_storm_leave_no_lock_taken() -> None:
    """A real signal, again and again, at whatever bytecode it comes."""
    flag = Flag()

    def use() -> None:
        while True:
            flag.wait(0)
            flag.set()
            flag.clear()

    with storm(0.0002) as interrupted:
        for _ in range(1000):
            assert interrupted(use)
    woken = threading.Thread(target=flag.set)
    woken.start()
    woken.join(5)
    assert not woken.is_alive()
    assert flag.wait(5)


def test_who_waits_at_several_bells_is_woken_by_any() -> None:
    """And by more than one, and again after a ring that was for nothing."""
    first, second, never = Bell(), Bell(), Bell()
    looks: list[bool] = []
    ready = threading.Event()

    def condition() -> bool:
        looks.append(True)
        if len(looks) == 2:  # it sleeps at all of them
            second.ring()
            first.ring()
        if len(looks) == 4:
            ready.set()
        return len(looks) >= 5

    def ring() -> None:
        ready.wait(10)
        second.ring()

    ringer = threading.Thread(target=ring)
    ringer.start()
    assert Bells(lambda: [first, never, second]).wait_for(condition, 10)
    ringer.join()
    assert len(looks) == 5
    assert not Bells(lambda: [first, second]).wait_for(lambda: False, 0.01)
    for bell in (first, second, never):
        assert not bell._sleepers
