"""The list in pages (S25), and the look at the server's revision (S30)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, repeat

import pytest

from dyninformer.watching import protocol
from dyninformer.watching.answers import Batch, Event, Lost, Opened, PageEnd, StatusError
from dyninformer.watching.effects import (
    Apply,
    Ask,
    AskRevision,
    Collect,
    Discard,
    ListPage,
    StreamState,
    Swap,
    WatchFrom,
)
from dyninformer.watching.states import BackingOff, LastChange, Plan
from tests.watching.talk import Talk, event, events, lister, refused

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


def there(version: str, revision: str = "200") -> PageEnd:
    """The server has the object of the last change, at this version."""
    return PageEnd(revision, items=1, first="default/w8", first_version=version)


GONE = PageEnd("200")


def test_after_a_connection_error_the_object_that_changed_last_is_looked_at() -> None:
    """In one request, that tells the server's revision too: a watch from the future is silence."""
    talk = changed_last(lister())
    assert talk.want(AskRevision).key == "default/w8"
    talk.say(Opened())
    talk.say(there("120"))
    assert talk.want(WatchFrom).version == "119"


@pytest.mark.parametrize("found", [there("120"), there("150"), GONE])
def test_the_watch_after_a_look_begins_with_the_last_change_and_goes_on(found: PageEnd) -> None:
    """It may have been changed or deleted since; what is held already comes once more (S30)."""
    talk = changed_last(lister())
    talk.say(found)
    talk.watch()
    again = Batch(events=[event("w8", "120"), event("w8", "151")], version="151")
    assert talk.say(again) == (Apply(again.events),)
    assert protocol.newest(talk.state) == "151"
    assert not talk.memory.doubtful
    talk.say(Lost("reset"))
    talk.when_due()
    assert talk.memory.last_change == LastChange("151", "default/w8", "w8", deleted=False)


OTHER_PASTS = {
    "another object before it": Batch(events=events("119"), version="119"),
    "its end at its version": Batch(events=[event("w8", "120", "DELETED")], version="120"),
    "another one of its name at its version": Batch(
        events=[event("w8", "120", uid="other")], version="120"
    ),
    "another object at its version": Batch(events=[event("other", "120")], version="120"),
    "something later at once": Batch(events=events("151"), version="151"),
    "nothing, up to a bookmark": Batch(version="151"),
    "something after it that is not held": Batch(
        events=[event("w8", "120"), event("other", "121")], version="121"
    ),
    "something at the version that is held": Batch(
        events=[event("w8", "120"), event("other", "130")], version="130"
    ),
}


@pytest.mark.parametrize("came", OTHER_PASTS.values(), ids=OTHER_PASTS)
@pytest.mark.parametrize("found", [there("120"), there("150"), GONE])
def test_a_server_with_another_past_was_restored(came: Batch, found: PageEnd) -> None:
    """Though it has come further than what is held: it is listed, and that is believed (S30)."""
    talk = lister().begin().list("100")
    talk.watch()
    talk.say(Batch(events=[event("w8", "120")], version="120"))
    talk.say(Batch(version="130"))
    talk.say(Lost("reset"))
    talk.when_due()
    talk.say(found)
    talk.watch()
    effects = talk.say(came)
    assert not any(isinstance(each, Apply) for each in effects)
    assert any("restored" in str(each) for each in effects)
    talk.want(ListPage)
    page(talk, "200")
    assert talk.want(WatchFrom).version == "200"


def test_a_server_that_does_not_tell_of_the_last_change_within_a_minute_has_another_past() -> None:
    """It has come as far, and says nothing (S30)."""
    talk = changed_last(lister())
    talk.say(GONE)
    talk.watch()
    assert protocol.silence(talk.state) == 60
    talk.say(Lost("silent", silent=True))
    talk.want(ListPage)


def test_an_older_state_of_the_last_changes_object_is_a_restore() -> None:
    """However far the server has come (S30)."""
    talk = lost(lister())
    effects = talk.say(there("7"))
    assert any("restored" in str(each) for each in effects)
    talk.want(ListPage)


def lost_after(talk: Talk, *events: Event) -> Talk:
    """A watch breaks after these, and its moment to go on has come."""
    talk.begin().list("100")
    talk.watch()
    talk.say(Batch(events=events, version=events[-1][1].version))
    talk.say(Lost("reset"))
    talk.when_due()
    return talk


def changed_last(talk: Talk) -> Talk:
    """Its last change is one of the object."""
    return lost_after(talk, event("w8", "120", "MODIFIED"))


def deleted_last(talk: Talk) -> Talk:
    """Its last change is the object's end."""
    return lost_after(talk, event("w8", "120", "DELETED"))


@pytest.mark.parametrize(
    ("reach", "found", "sure"),
    [
        (changed_last, there("120"), True),
        (deleted_last, GONE, True),
        (changed_last, there("150"), False),
        (changed_last, GONE, False),
        (deleted_last, there("150"), False),
    ],
)
@pytest.mark.parametrize("namespace", ["", "default"])
def test_where_the_history_has_gone_the_collection_is_listed(
    reach: Callable[[Talk], Talk], found: PageEnd, sure: bool, namespace: str
) -> None:
    """But of a part of a collection it goes all the time, which need not mean a thing (S30)."""
    talk = reach(lister(namespace=namespace))
    talk.say(found)
    assert talk.want(WatchFrom).version == "119"
    talk.watch()
    talk.say(Batch(error=TOO_OLD))
    if not (sure and namespace):
        talk.want(ListPage)
        return
    assert talk.want(WatchFrom).version == "120"
    talk.watch()
    talk.say(Batch(events=events("130"), version="130"))
    assert protocol.newest(talk.state) == "130"


def test_a_collection_that_rests_is_listed_at_most_once_for_each_api_server_that_begins() -> None:
    """After that its history is asked for since that list, and that is there (S30)."""
    talk = lost(lister())
    talk.say(there("8"))
    assert talk.want(WatchFrom).version == "100"
    talk.watch()
    talk.say(Batch(error=TOO_OLD))
    talk.list("200")
    talk.watch()
    talk.say(Batch(version="300"))
    talk.say(Lost("reset"))
    talk.when_due()
    talk.say(there("8", revision="400"))
    assert talk.want(WatchFrom).version == "200"
    talk.watch()
    talk.say(Batch(version="400"))
    assert not talk.memory.doubtful
    assert protocol.newest(talk.state) == "400"


def test_something_between_the_last_list_and_what_is_held_is_of_another_past() -> None:
    """Nothing was told of it when it should have happened (S30)."""
    talk = lister().begin().list("100")
    talk.watch()
    talk.say(Batch(version="150"))
    talk.say(Lost("reset"))
    talk.when_due()
    talk.say(there("8"))
    assert talk.want(WatchFrom).version == "100"
    talk.watch()
    talk.say(Batch(events=events("140"), version="140"))
    talk.want(ListPage)


@pytest.mark.parametrize("version", ["8", "120"])
def test_a_deleted_object_that_is_there_as_it_was_before_is_a_restore(version: str) -> None:
    """Its deletion was the last change (S30)."""
    talk = deleted_last(lister())
    talk.say(there(version))
    talk.want(ListPage)


def test_what_happens_in_a_collection_that_was_empty_is_seen_from_its_list_on() -> None:
    """Something from before the newest version that is known can only be from another past."""
    talk = lister().begin()
    talk.say(PageEnd("100"))
    talk.watch()
    talk.say(Batch(version="150"))
    talk.say(Lost("reset"))
    talk.when_due()
    assert talk.want(AskRevision).key == ""
    talk.say(PageEnd("200", items=1, first="default/w120", first_version="120"))
    assert talk.want(WatchFrom).version == "100"
    talk.watch()
    talk.say(Batch(events=events("120"), version="120"))
    talk.want(ListPage)


def test_a_look_is_repeated_until_a_watch_has_shown_the_last_change() -> None:
    """A stream that is refused or breaks before has told nothing (S30)."""
    talk = lost(lister())
    for end in (refused(429), Lost("reset"), refused(503)):
        talk.say(there("150"))
        talk.want(WatchFrom)
        talk.say(end)
        talk.when_due()
        talk.want(AskRevision)


@pytest.mark.parametrize("code", [400, 403, 405, 422])
def test_a_server_that_cannot_be_asked_for_one_object_is_asked_for_its_revision(code: int) -> None:
    """That is remembered; the watch begins at the last list all the same (S30)."""
    talk = lost(lister())
    talk.say(refused(code))
    assert talk.want(AskRevision).key == ""
    talk.say(PageEnd("200", items=1, first="default/a", first_version="3"))
    assert talk.want(WatchFrom).version == "100"
    talk.say(Lost("reset"))
    talk.when_due()
    assert talk.want(AskRevision).key == ""


def test_opaque_versions_have_no_last_change() -> None:
    """What is before one of them, nobody knows (S30)."""
    talk = lister().begin()
    page(talk, "zz")
    talk.watch()
    talk.say(Lost("reset"))
    talk.when_due()
    assert talk.want(AskRevision).key == ""
    talk.say(PageEnd("aa"))
    assert talk.want(WatchFrom).version == "zz"


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
    for key in ("default/w8", ""):
        assert talk.want(AskRevision).key == key
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
