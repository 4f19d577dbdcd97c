"""What a run was made on: facts of this machine that are needed to repeat or compare it."""

from __future__ import annotations

import os
import platform
import resource
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import psutil

PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
PACKAGES = ("loadstone", "httptools", "msgspec", "numpy", "polars", "tokenizers")


def host() -> dict[str, Any]:
    """Host, processor, memory, system and the versions of what the numbers went through."""
    return {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "usable_cores": usable_cores(),
        "clock_source": _clock_source(),
        "memory_bytes": psutil.virtual_memory().total,
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def usable_cores() -> int:
    """Cores this process may run on: affinity counts, a container's quota does not."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def raise_descriptor_limit() -> int:
    """Lets this process, and those it starts, have as many descriptors as the system allows; how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems have a lower limit than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return soft if soft != resource.RLIM_INFINITY else 1 << 30


def local_ports() -> int | None:
    """How many connections to one address this host has ports for; None where the system does not say."""
    try:
        first, last = map(int, PORTS.read_text().split())
    except (OSError, ValueError):
        return None
    return last - first + 1


def is_local(address: str) -> bool:
    """Whether an IP address belongs to this very host."""
    try:
        if ip_address(address.partition("%")[0]).is_loopback:
            return True
    except ValueError:
        return False
    own = (entry.address.partition("%")[0] for entries in psutil.net_if_addrs().values() for entry in entries)
    return address.partition("%")[0] in own


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _clock_source() -> str | None:
    """What the kernel's clocks are read from; None where the system does not say."""
    try:
        return CLOCK_SOURCE.read_text().strip()
    except OSError:
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
