"""A timer that an event loop can wait for, exact to some microseconds.

epoll's own timeout counts whole milliseconds. A timerfd does not, and is armed with an absolute
CLOCK_MONOTONIC time, so no reading of the clock goes stale. Python has it from 3.13; before, libc is asked.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time

from loadstone.clock import SECOND_NS

_ABSOLUTE = 1
_NONBLOCK = os.O_NONBLOCK
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)


class _Spec(ctypes.Structure):
    """struct itimerspec: interval, then value."""

    _fields_ = [(name, ctypes.c_long) for name in ("every_s", "every_ns", "at_s", "at_ns")]


class Timer:
    """A timerfd. `fd` becomes readable when the armed time has come."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd: int = self._libc.timerfd_create(time.CLOCK_MONOTONIC, _NONBLOCK | _CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._spec = _Spec()
        self._pointer = ctypes.byref(self._spec)
        self._settime = self._libc.timerfd_settime
        self.armed_ns = 0

    def arm(self, at_ns: int) -> None:
        """Sets the time to wait for, CLOCK_MONOTONIC ns; a time that has passed fires at once."""
        if at_ns == self.armed_ns:
            return
        self.armed_ns = at_ns
        self._spec.at_s, self._spec.at_ns = divmod(max(at_ns, 1), SECOND_NS)
        self._settime(self.fd, _ABSOLUTE, self._pointer, None)

    def clear(self) -> None:
        """Takes note that the timer has fired."""
        self.armed_ns = 0
        try:
            os.read(self.fd, 8)
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Gives the descriptor back."""
        os.close(self.fd)


def available() -> bool:
    """Whether this system has timerfd."""
    return sys.platform == "linux"
