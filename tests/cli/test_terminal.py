"""Ends of commands that run until somebody ends them."""

from __future__ import annotations

import os
import signal

import pytest
import typer

from dyninformer.cli.terminal import shutdown_on_signals


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_asks_for_the_end_and_says_the_exit_code(number: int, code: int) -> None:
    """It interrupts nothing; what was there before is there again afterwards."""
    before = signal.getsignal(number)
    with shutdown_on_signals() as shutdown:
        assert not shutdown.wait(0)
        shutdown.exit()
        os.kill(os.getpid(), number)
        assert shutdown.wait(60)
        with pytest.raises(typer.Exit) as asked:
            shutdown.exit()
        assert asked.value.exit_code == code
    assert signal.getsignal(number) is before


def test_the_second_signal_does_not_wait() -> None:
    """Somebody means it."""
    with shutdown_on_signals() as shutdown:
        os.kill(os.getpid(), signal.SIGINT)
        assert shutdown.wait(60)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
