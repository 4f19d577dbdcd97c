"""What else this machine did while the load lasted: stolen time, clock rate, dropped packets, memory that ran short.

`readings` are the kernel's counters at one moment, `watch` follows them through the phases of a run.
"""

from loadstone.machine.watch import Machine

__all__ = ["Machine"]
