"""The list in pages (S25), and the look at the server's revision (S30)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, repeat

import pytest

from dyninformer.watching import protocol
from dyninformer.watching.answers import Batch, Lost, Opened, PageEnd, StatusError
from dyninformer.watching.effects import (
    Ask,
    AskRevision,
    Collect,
    Discard,
    ListPage,
    StreamState,
    Swap,
    WatchFrom,
)
from dyninformer.watching.states import BackingOff, Plan
from tests.watching.talk import Talk, events, lister, refused

TOO_OLD = StatusError(410, "Expired", "too old resource version: 1 (2)")


def page(talk: Talk, version: str, continue_: str = "") -> None:
    """Answer a page with one object."""
    talk.say(Opened())
    talk.say(Batch(events=events(version), version=version))
    talk.say(PageEnd(version, continue_, items=1))


def test_pages_are_followed_and_the_watch_starts_at_the_first_ones_version() -> None:
    """A later page may be newer: the changes to page one in between would be lost (S25)."""
    talk = lister().begin()
    assert talk.want(ListPage) == ListPage("", limited=True)
    page(talk, "10", "more")
    assert talk.want(ListPage) == ListPage("more", limited=True)
    page(talk, "14")
    assert talk.want(WatchFrom).version == "10"


def test_nothing_is_swapped_in_before_the_last_page() -> None:
    """Build apart, swap in."""
    talk = lister().begin()
    page(talk, "10", "more")
    assert not any(isinstance(each, Swap) for each in talk.effects)
    page(talk, "10")
    assert Swap(first=True, cause="start") in talk.effects


def test_a_continue_is_followed_even_where_no_limit_was_asked_for() -> None:
    """A cold cache obeys limits that were not meant (S25)."""
    talk = lister().begin()
    page(talk, "10", "more")
    talk.say(refused(410))
    page(talk, "12", "rest")
    assert talk.want(ListPage) == ListPage("rest", limited=False)


def test_a_token_that_is_too_old_is_followed_by_one_list_without_limit() -> None:
    """At once, and what was read is thrown away (S25)."""
    talk = lister().begin()
    page(talk, "10", "more")
    effects = talk.say(refused(410))
    assert effects == (Discard(), Ask(ListPage("", limited=False)))
    talk.list("12")
    assert talk.want(WatchFrom).version == "12"


def test_a_list_without_limit_that_is_too_old_as_well_is_a_failure() -> None:
    """No loop."""
    talk = lister().begin()
    page(talk, "10", "more")
    talk.say(refused(410))
    page(talk, "12", "rest")
    talk.say(refused(410))
    talk.in_state(BackingOff)


def test_a_first_watch_that_is_too_old_is_followed_by_a_list_without_limit() -> None:
    """Then by a streaming list, if the server has them (S25)."""
    talk = Talk().begin()
    talk.say(Opened())
    talk.say(Lost("silent", silent=True))
    talk.when_due()
    page(talk, "10")
    talk.watch()
    talk.say(Batch(error=TOO_OLD))
    assert talk.want(ListPage) == ListPage("", limited=False)
    page(talk, "12")
    talk.watch()
    talk.say(Batch(error=TOO_OLD))
    talk.want(StreamState)


def test_lists_whose_watches_are_always_too_old_end_in_a_wait() -> None:
    """Without streaming lists there is nothing else to try (S29)."""
    talk = lister().begin()
    for _ in range(2):
        page(talk, "10")
        talk.watch()
        talk.say(Batch(error=TOO_OLD))
    talk.in_state(BackingOff)


def test_a_watch_that_brought_something_and_is_then_too_old_is_followed_by_the_usual_list() -> None:
    """The list was new enough."""
    talk = lister().begin()
    page(talk, "10")
    talk.watch()
    talk.say(Batch(events=events("11"), version="11"))
    talk.say(Batch(error=TOO_OLD))
    assert talk.want(ListPage) == ListPage("", limited=True)


@pytest.mark.parametrize("end", [Lost("cut short"), refused(503), Batch(broken="x")])
def test_a_list_that_fails_in_the_middle_is_thrown_away(end: Lost | Batch) -> None:
    """Nothing of it is seen."""
    talk = lister().begin()
    page(talk, "10", "more")
    effects = talk.say(end)
    assert effects[0] == Discard()
    talk.in_state(BackingOff)
    assert talk.memory.version == ""
    talk.when_due()
    assert talk.want(ListPage).continue_ == ""


def test_a_token_that_leads_to_itself_is_a_failure() -> None:
    """A list without end would be a hot loop."""
    talk = lister().begin()
    page(talk, "10", "more")
    page(talk, "10", "more")
    talk.in_state(BackingOff)


def test_pages_of_nothing_are_not_asked_for_without_end() -> None:
    """They count among the requests that bring nothing (S29)."""
    talk = lister().begin()
    for number in range(100):
        talk.say(Opened())
        talk.say(PageEnd("10", f"more{number}"))
        if isinstance(talk.state, BackingOff):
            break
    assert len(talk.asked) <= 60


def turn_pages(talk: Talk, pages: Iterator[PageEnd]) -> int:
    """Answer page after page until it waits, or has no page more; how many were asked for."""
    before = len(talk.asked)
    for number, end in enumerate(pages):
        talk.say(Opened())
        talk.say(replace(end, continue_=f"more{number}"))
        if isinstance(talk.state, BackingOff):
            break
    return len(talk.asked) - before


def endless(pages: Iterator[PageEnd]) -> None:
    """A list of such pages is given up after some sixty of them, with a reason."""
    talk = lister().begin()
    assert turn_pages(talk, pages) <= 60 + 3  # what the server counted is allowed
    talk.in_state(BackingOff)
    assert "does not end" in talk.memory.reason


def test_pages_that_go_round_in_circles_are_not_asked_for_without_end() -> None:
    """They have items, and bring nothing (S29)."""
    endless(repeat(PageEnd("10", items=500, repeats=True)))


def test_more_pages_than_the_server_counted_are_not_asked_for_without_end() -> None:
    """Whether it says the same again with each page, or has said it once (S29)."""
    endless(repeat(PageEnd("10", items=1, remaining=70)))
    endless(chain([PageEnd("10", items=1, remaining=3)], repeat(PageEnd("10", items=1))))
    endless(chain([PageEnd("10", items=1, remaining=3)], repeat(PageEnd("10", remaining=9))))


def test_a_list_may_have_as_many_pages_as_it_needs() -> None:
    """With a count that falls, without one, or with one that was wrong for a while (S25)."""
    added_to = (PageEnd("10", items=1, remaining=1000 - max(0, n - 40)) for n in range(1000))
    for pages in (
        (PageEnd("10", items=1, remaining=1000 - n) for n in range(1000)),
        (PageEnd("10", items=1) for _ in range(1000)),
        added_to,
    ):
        talk = lister().begin()
        assert turn_pages(talk, pages) == 1000
        talk.say(PageEnd("14", items=1))
        assert talk.want(WatchFrom).version == "10"


def test_after_a_list_without_end_the_next_one_has_no_pages() -> None:
    """A server that counts its pages wrong may have the list whole; what is held stays (S29)."""
    talk = lister().begin()
    turn_pages(talk, repeat(PageEnd("10", items=500, repeats=True)))
    assert Discard() in talk.effects
    while not protocol.asks(talk.state):
        talk.when_due()
    assert talk.want(ListPage) == ListPage("", limited=False)
    talk.list("12")
    talk.want(WatchFrom)


def test_a_list_without_a_version_is_no_list() -> None:
    """A watch from "" would be everything again."""
    talk = lister().begin()
    page(talk, "")
    talk.in_state(BackingOff)
    assert "resourceVersion" in talk.reason()


def test_unusable_items_are_passed_on_with_the_rest() -> None:
    """They count as present (S32)."""
    talk = lister().begin()
    talk.say(Opened())
    assert talk.say(Batch(unusable=("a", None))) == (Collect((), ("a", None)),)


def test_a_list_older_than_what_is_held_is_asked_for_once_more_after_a_wait() -> None:
    """Older again is a restore (S30)."""
    talk = lister().begin()
    page(talk, "100")
    talk.watch()
    talk.say(Batch(error=StatusError(500, "", "oh")))
    talk.when_due()
    page(talk, "50")
    talk.in_state(BackingOff)
    talk.when_due()
    page(talk, "51")
    assert talk.memory.version == "51"
    assert any("restored" in str(each) for each in talk.effects)


def test_opaque_versions_are_never_older() -> None:
    """Equality is all that can be told (S30)."""
    talk = lister().begin()
    page(talk, "zz")
    talk.watch()
    talk.say(Batch(error=StatusError(500, "", "oh")))
    talk.when_due()
    page(talk, "aa")
    assert talk.memory.version == "aa"


def lost(talk: Talk) -> Talk:
    """A watch breaks, and its moment to go on has come."""
    talk.begin().list("100")
    talk.watch()
    talk.say(Lost("reset"))
    talk.when_due()
    return talk


def test_after_a_connection_error_the_servers_revision_is_looked_at() -> None:
    """A watch from the future is silence (S30)."""
    talk = lost(lister())
    talk.want(AskRevision)
    talk.say(Opened())
    talk.say(PageEnd("100", "more", items=1))
    assert talk.want(WatchFrom).version == "100"


def test_a_revision_below_what_is_held_is_a_restore() -> None:
    """It is listed at once, and the list is believed (S30)."""
    talk = lost(lister())
    talk.say(Opened())
    talk.say(PageEnd("99", items=1))
    talk.want(ListPage)
    page(talk, "99")
    assert talk.memory.version == "99"
    assert talk.memory.listed is Plan.PAGED


def test_items_of_a_look_at_the_revision_change_nothing() -> None:
    """It is one object of many."""
    talk = lost(lister())
    talk.say(Opened())
    assert talk.say(Batch(events=events("90"), version="90")) == ()


def test_who_may_watch_but_not_list_reads_a_streaming_list_instead() -> None:
    """Its mark tells the revision as well."""
    talk = Talk().begin().stream("100")
    talk.say(Lost("reset"))
    talk.when_due()
    talk.want(AskRevision)
    talk.say(refused(403))
    talk.want(StreamState)


def test_a_look_that_fails_is_repeated_before_any_watch() -> None:
    """Doubt stays until it is answered."""
    talk = lost(lister())
    talk.say(refused(503))
    talk.when_due()
    talk.want(AskRevision)
    talk.say(Lost("reset"))
    talk.when_due()
    talk.want(AskRevision)
