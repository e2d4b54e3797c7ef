"""Which informer serves a resource, and for how long."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from dyninformer import (
    GroupVersionResource,
    OptionsConflictError,
    ResourceOptions,
    SharedIndexInformer,
    StoppedError,
)
from dyninformer.registry import Registry
from dyninformer.shared import Shared
from dyninformer.testing.client import dynamic_client

PODS = GroupVersionResource("", "v1", "pods")
MAPS = GroupVersionResource("", "v1", "configmaps")
ANY = ResourceOptions()


@pytest.fixture
def shared() -> Iterator[Shared]:
    """A connection that nobody uses: no informer here is started."""
    found = Shared.connect(dynamic_client("http://127.0.0.1:9", "token", None))
    yield found
    found.close()


@pytest.fixture
def registry(shared: Shared) -> Registry:
    """One without informers, whose resources have a page size of their own."""
    return Registry(
        lambda gvr, options: SharedIndexInformer(None, gvr, options, shared=shared),
        defaults=ResourceOptions(namespaces="prod"),
        resources={PODS: ResourceOptions(page_size=7)},
    )


def test_everybody_has_the_same_informer(registry: Registry) -> None:
    """With what was asked first, over what is said of the resource, over the defaults."""
    found = registry.ask(PODS, ResourceOptions(label_selector="a=b"))
    assert registry.ask(PODS, ANY) is registry.borrow(PODS, ANY, "user") is found
    assert registry.known(PODS) is found
    assert registry.all() == [found]
    used = found.informer.options
    assert (used.namespaces, used.page_size, used.label_selector) == (("prod",), 7, "a=b")


def test_many_threads_that_ask_at_once_have_one(registry: Registry) -> None:
    """However they meet."""
    together = threading.Barrier(8)
    found = []

    def ask() -> None:
        together.wait(30)
        found.append(registry.ask(PODS, ANY))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_what_was_only_borrowed_goes_with_its_last_borrower(registry: Registry) -> None:
    """It is stopped, and forgotten."""
    informer = registry.borrow(PODS, ANY, "first").informer
    registry.borrow(PODS, ANY, "second")
    registry.give_back(informer, "first")
    assert not informer.is_stopped()
    registry.give_back(informer, "second")
    assert informer.is_stopped()
    assert registry.all() == []


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_what_was_asked_for_by_name_stays(registry: Registry, *, first: bool) -> None:
    """Whether it was asked for before somebody borrowed it, or after."""
    if first:
        registry.ask(PODS, ANY)
    informer = registry.borrow(PODS, ANY, "user").informer
    if not first:
        registry.ask(PODS, ANY)
    registry.give_back(informer, "user")
    assert not informer.is_stopped()
    assert registry.ask(PODS, ANY).informer is informer


def test_one_of_the_callers_own_stays_too(registry: Registry, shared: Shared) -> None:
    """Unless there is one already: then that is kept in its place."""
    borrowed = registry.borrow(PODS, ANY, "user")
    own = SharedIndexInformer(None, PODS, shared=shared)
    assert registry.adopt(own) is borrowed
    registry.give_back(borrowed.informer, "user")
    assert registry.known(PODS) is borrowed
    maps = SharedIndexInformer(None, MAPS, shared=shared)
    assert registry.adopt(maps).informer is maps


def test_what_is_given_back_late_harms_nobody(registry: Registry) -> None:
    """It was removed meanwhile, and another one has come."""
    old = registry.borrow(PODS, ANY, "user").informer
    registry.forget(PODS)
    new = registry.borrow(PODS, ANY, "user").informer
    registry.give_back(old, "user")
    assert not new.is_stopped()
    assert [each.informer for each in registry.all()] == [new]


def test_a_conflict_of_options_is_no_use(registry: Registry) -> None:
    """Who was refused keeps nothing alive."""
    informer = registry.borrow(PODS, ANY, "user").informer
    with pytest.raises(OptionsConflictError, match=r"page_size: now 9, before 7.*factory\.remove"):
        registry.ask(PODS, ResourceOptions(page_size=9))
    registry.give_back(informer, "user")
    assert informer.is_stopped()


def test_a_stopped_one_is_replaced(registry: Registry) -> None:
    """By one that may have other options."""
    first = registry.ask(PODS, ANY)
    first.informer.signal_stop()
    assert registry.known(PODS) is None
    second = registry.ask(PODS, ResourceOptions(page_size=9))
    assert second is not first
    assert second.informer.options.page_size == 9


def test_what_is_closed_keeps_what_it_has(registry: Registry) -> None:
    """For reads, borrowed or not; nothing new comes."""
    found = registry.borrow(PODS, ANY, "user")
    registry.close()
    found.informer.signal_stop()
    registry.give_back(found.informer, "user")
    assert registry.ask(PODS, ANY) is found
    with pytest.raises(StoppedError, match=r"cannot watch configmaps\.v1: this factory has been"):
        registry.ask(MAPS, ANY)
