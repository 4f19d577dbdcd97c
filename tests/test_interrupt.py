from __future__ import annotations

import signal

import pytest

from loadstone.interrupt import SIGNALS, Interrupt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_counted_and_do_nothing_else(number):
    with Interrupt() as interrupt:
        assert interrupt.asked == 0
        signal.raise_signal(number)
        assert interrupt.asked == 1
        signal.raise_signal(signal.SIGINT)
        assert interrupt.asked == 2


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in SIGNALS]
    with Interrupt():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_handlers_are_put_back_after_a_failure():
    before = [signal.getsignal(number) for number in SIGNALS]
    with pytest.raises(KeyError), Interrupt():
        raise KeyError
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_context_counts_for_itself():
    with Interrupt() as outer:
        with Interrupt() as inner:
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert (outer.asked, inner.asked) == (1, 1)
