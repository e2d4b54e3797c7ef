"""When discovery is looked at: by the news of CRDs, and by the clock."""

from __future__ import annotations

from dyninformer.follow.agenda import (
    CROWDED,
    CROWDED_FAILING,
    PERIOD,
    QUIET_PERIOD,
    SETTLING,
    Agenda,
)


def test_the_first_look_is_now() -> None:
    """Nothing is waited for."""
    assert Agenda(100.0).next == 100.0


def test_without_news_of_crds_every_half_minute() -> None:
    """And with them every five minutes, for what comes without a CRD."""
    agenda = Agenda(100.0)
    agenda.looked(100.0, news=False)
    assert agenda.next == 100.0 + PERIOD == 130.0
    agenda.looked(130.0, news=True)
    assert agenda.next == 130.0 + QUIET_PERIOD == 430.0


def test_after_news_until_discovery_has_followed() -> None:
    """At once, a second and five seconds later; a server's discovery may lag."""
    agenda = Agenda(100.0)
    agenda.looked(100.0, news=True)
    agenda.woken(200.0)
    looks = []
    for _ in SETTLING:
        looks.append(agenda.next)
        agenda.looked(agenda.next, news=True)
    assert looks == [200.0, 201.0, 205.0]
    assert agenda.next == 205.0 + QUIET_PERIOD


def test_many_news_are_a_few_looks() -> None:
    """A storm of changes costs a look every quarter of a second, not one each."""
    agenda = Agenda(100.0)
    agenda.looked(100.0, news=True)
    for step in range(100):
        agenda.woken(100.0 + step / 1000)
    assert agenda.next == 100.0 + CROWDED


def test_after_a_failure_at_the_end_of_the_delay() -> None:
    """Unless there are news before."""
    agenda = Agenda(100.0)
    agenda.failed(100.0, 8.0)
    assert agenda.next == 108.0
    agenda.woken(104.0)
    assert agenda.next == 104.0


def test_news_after_a_failure_bring_no_look_sooner_than_a_second_later() -> None:
    """News do not say that discovery answers again."""
    agenda = Agenda(100.0)
    agenda.failed(100.0, 8.0)
    for step in range(100):
        agenda.woken(100.0 + step / 1000)
    assert agenda.next == 100.0 + CROWDED_FAILING
    agenda.failed(101.0, 0.8)
    agenda.woken(101.0)
    assert agenda.next == 101.8
