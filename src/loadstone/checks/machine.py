"""Whether this machine was the run's own: stolen time, clock rate, other processes, lost packets, memory.

All from the kernel's counters while the measured phases lasted (`machine` in run.json). Where the server is elsewhere they
are the client's machine alone; nobody looks at the server's.
"""

from __future__ import annotations

from functools import reduce

from loadstone.checks.evidence import Evidence, Verdict, answer
from loadstone.config import ENGINE
from loadstone.figures import brief, counted
from loadstone.folder import MachineSpan
from loadstone.machine.watch import merge
from loadstone.report import Check

STOLEN_PERCENT = 1.0
"""Of the time, stolen, from which on it may shift a p99."""
STOLEN_GRAVE_PERCENT = 5.0
"""From here on a p95."""
STOLEN_SECOND = 0.5
"""Half of one second: whatever came in it was late."""
SLOWED_PERCENT = 10.0
"""The clock rate of an idle and of a busy machine differ by more, but that of one and the same load by a few percent."""
LESS_BUSY = 0.8
"""With less than so much of the load before, a lower clock rate is no wonder."""
THIRD = 3
"""Spans in the first and in the last third of a run, at least, to compare them by."""
OTHERS_PERCENT = 10.0
"""Of all cores, used by others."""
CROWDED_PERCENT = 90.0
"""Busy share of all cores from which on others take from us what they use; below it the scheduler has a free one."""
CROWDED_LEAST_NS = 1_000_000_000
"""Over less processor time a share says nothing: the kernel counts in hundredths of a second."""
DROPS_PERCENT = 1.0
"""Drops and resends per hundred requests; each may cost one of them 200 ms and more (the least time-out of Linux's TCP)."""
DROPS_NOTED_PERCENT = 0.1
DROPS_LEAST = 3
"""One or two are lost on any network now and then, and say nothing of a share."""
SHORT_OF_MEMORY_PERCENT = 1.0
"""Of the time, in which some process waited for memory: from here on it may shift a p99."""
LITTLE_LEFT = 0.02
"""Of all memory, left: from here on the kernel takes pages away from whoever has any."""
SLOW_CLOCKS = frozenset({"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"})
"""Sources that are read through a system call, in a microsecond or more; the others take some tens of nanoseconds."""


def machine_steal(evidence: Evidence) -> Check:
    """The hypervisor gave the cores of this machine to nobody else.

    Time that is stolen is the one delay that no stamp of the kernel shows: a core that does not run dates no packet, so what
    comes meanwhile is dated late, and the client's lags look small. NOTE from 1 % of the measured time on, or when half
    of any one second was stolen; DEGRADED from 5 % on.
    """
    seen = measured(evidence)
    if seen is None or seen.steal_ns is None or not seen.cpu_ns:
        return answer("machine_steal", "VALID", None, "%", f"not known: {_lack(evidence, 'steal_ns')}")
    share, most = 100 * seen.steal_ns / seen.cpu_ns, seen.most_stolen or 0.0
    if share < STOLEN_PERCENT and most < STOLEN_SECOND:
        return answer("machine_steal", "VALID", share, "%", "the hypervisor stole no time to speak of.")
    finding = (
        f"the hypervisor gave {brief(share)} % of this machine's time to somebody else (in the worst second"
        f" {brief(100 * most)} %): what came meanwhile is dated late, and the lags do not show it."
    )
    verdict: Verdict = "DEGRADED" if share >= STOLEN_GRAVE_PERCENT else "NOTE"
    advice = "Measure from a machine with dedicated cores (no burstable or overcommitted instance), or at another time."
    return answer("machine_steal", verdict, share, "%", finding, advice)


def clock_rate(evidence: Evidence) -> Check:
    """The processor kept its clock rate: it was not throttled for heat, and no slower in the last third than in the first.

    Slower is 10 % and more, of a machine that was not less busy. NOTE; DEGRADED where the server runs on this machine too,
    since then its latencies rise with it.
    """
    spans = _spans(evidence)
    throttles = [span.throttles for span in spans if span.throttles is not None]
    fell = _fell_percent(spans)
    if fell is None and not throttles:
        return answer(
            "clock_rate", "VALID", None, "%", f"not known: {_lack(evidence, 'mhz', 'the run was too short.')}"
        )
    hot = sum(throttles)
    if not hot and (fell is None or fell < SLOWED_PERCENT):
        return answer("clock_rate", "VALID", fell, "%", "the clock rate stayed what it was.")
    told = f"cores lowered their clock rate {counted(hot, 'time')} because they were too hot" if hot else ""
    if fell is not None and fell >= SLOWED_PERCENT:
        told += f"{' and ' if told else ''}the clock rate fell by {brief(fell)} % from the first third of the run to the last"
    local = evidence.tables.run.server_local
    verdict: Verdict = "DEGRADED" if local else "NOTE"
    what = "the server and the client both became slower" if local else "the client became slower"
    advice = (
        "Let it cool down, set the governor to performance, or keep the load below what it can bear for long."
    )
    return answer("clock_rate", verdict, fell, "%", f"{told}: {what} as the run went on.", advice)


def other_load(evidence: Evidence) -> Check:
    """No other processes used this machine's cores while it was short of them.

    Others are all processes but those of this run (its workers, decoders, the built-in engine). NOTE from 10 % of all cores
    on; DEGRADED when at the same time less than a tenth of them was free and the built-in engine runs here, which had to wait
    (of the client alone its lags tell). Where a server of somebody else's runs on this machine, its work cannot be told from
    that of others.
    """
    seen = measured(evidence)
    if seen is None or seen.cpu_ns < CROWDED_LEAST_NS:
        return answer(
            "other_load", "VALID", None, "%", f"not known: {_lack(evidence, '', 'the run was too short.')}"
        )
    foreign = any(not url.startswith(ENGINE) for url in evidence.tables.config.endpoint.urls)
    if evidence.tables.run.server_local and foreign:
        why = "the server's processes on this machine cannot be told from those of others."
        return answer("other_load", "VALID", None, "%", f"not known: {why}")
    stolen_ns = seen.steal_ns or 0
    others = 100 * max(0, seen.busy_ns - stolen_ns - seen.ours_ns) / seen.cpu_ns
    busy = 100 * seen.busy_ns / seen.cpu_ns
    if others < OTHERS_PERCENT:
        return answer("other_load", "VALID", others, "%", "no other process used the cores to speak of.")
    crowded = busy >= CROWDED_PERCENT
    verdict: Verdict = "DEGRADED" if crowded and evidence.tables.run.server_local else "NOTE"
    then = "so the run had to wait for cores" if crowded else "though there was room for all"
    finding = f"other processes used {brief(others)} % of this machine's cores, which were {brief(busy)} % busy, {then}."
    advice = "End what else runs here, or give loadstone a machine of its own."
    return answer("other_load", verdict, others, "%", finding, advice)


def kernel_drops(evidence: Evidence) -> Check:
    """Nothing was lost on this machine's side of the network: no segment sent again, none thrown away after it had come.

    Counted are all connections of this host. A segment that is lost costs the request it belongs to 200 ms and more. NOTE
    from one in a thousand requests on, DEGRADED from one in a hundred and three in all on, where it may shift a p99.
    """
    seen = measured(evidence)
    kinds = ("tcp_retransmits", "tcp_drops", "packet_drops")
    counts = {kind: getattr(seen, kind) for kind in kinds if getattr(seen, kind, None) is not None}
    sent = int(evidence.tables.requests["sent_ns"].is_not_null().sum())
    if not counts or not sent:
        lack = _lack(evidence, "tcp_retransmits", "no request was sent.")
        return answer("kernel_drops", "VALID", None, "%", f"not known: {lack}")
    share = 100 * sum(counts.values()) / sent
    if share < DROPS_NOTED_PERCENT:
        return answer("kernel_drops", "VALID", share, "%", "the kernel lost nothing to speak of.")
    words = {
        "tcp_retransmits": "segments were sent again",
        "tcp_drops": "were thrown away by TCP",
        "packet_drops": "packets were thrown away unseen",
    }
    told = ", ".join(f"{count:,} {words[kind]}" for kind, count in counts.items() if count)
    finding = f"for {counted(sent, 'request')} {told}: each may have cost one of them 200 ms or more."
    grave = share >= DROPS_PERCENT and sum(counts.values()) >= DROPS_LEAST
    verdict: Verdict = "DEGRADED" if grave else "NOTE"
    advice = "Look at the network's errors (nstat, ethtool -S); on the loopback raise net.core.netdev_max_backlog and somaxconn."
    return answer("kernel_drops", verdict, share, "%", finding, advice)


def memory_pressure(evidence: Evidence) -> Check:
    """No process had to wait for memory: none was read back from swap, and there was some left.

    DEGRADED when some process waited for 1 % of the time or more; NOTE when anything was read back from swap, or less than
    2 % of the memory was left.
    """
    seen = measured(evidence)
    if seen is None or seen.end_ns <= seen.start_ns:
        return answer("memory_pressure", "VALID", None, "%", f"not known: {_lack(evidence, '')}")
    lasted_ns = sum(span.end_ns - span.start_ns for span in _spans(evidence))
    waited = None if seen.memory_pressure_ns is None else 100 * seen.memory_pressure_ns / lasted_ns
    advice = "End what else uses memory here; fewer requests under way (--concurrency) and shorter answers take less of it."
    if waited is not None and waited >= SHORT_OF_MEMORY_PERCENT:
        finding = f"some process of this machine waited for memory in {brief(waited)} % of the time."
        return answer("memory_pressure", "DEGRADED", waited, "%", finding, advice)
    total = evidence.tables.run.environment.get("memory_bytes")
    left = seen.least_available_bytes / total if isinstance(total, int) and total else None
    if seen.swapped_in_bytes:
        mb = brief(seen.swapped_in_bytes / 1e6)
        return answer(
            "memory_pressure", "NOTE", waited, "%", f"{mb} MB were read back from swap meanwhile.", advice
        )
    if left is not None and left < LITTLE_LEFT:
        finding = f"only {brief(100 * left)} % of this machine's memory was left."
        return answer("memory_pressure", "NOTE", waited, "%", finding, advice)
    return answer("memory_pressure", "VALID", waited, "%", "there was memory enough.")


def clock_source(evidence: Evidence) -> Check:
    """The kernel's clocks are read in user space. One that is not costs a microsecond and more at every read of an answer:
    a NOTE.
    """
    source = evidence.tables.run.environment.get("clock_source")
    if source not in SLOW_CLOCKS:
        told = (
            f"the clock is {source}." if source else "not known: this system does not tell its clock source."
        )
        return answer("clock_source", "VALID", None, "", told)
    finding = f"the kernel's clock is {source}, which takes a microsecond or more to read, at every read of an answer."
    advice = "See in the kernel's log why it gave up tsc (dmesg | grep -i clocksource)."
    return answer("clock_source", "NOTE", None, "", finding, advice)


def measured(evidence: Evidence) -> MachineSpan | None:
    """What the machine did over all measured phases together; None when nobody looked."""
    spans = _spans(evidence)
    return reduce(merge, spans) if spans else None


def _spans(evidence: Evidence) -> list[MachineSpan]:
    """The spans of the measured phases."""
    log = evidence.tables.run.machine
    names = {phase.name for phase in evidence.tables.phases}
    return [] if log is None else [span for span in log.spans if span.phase in names]


def _lack(evidence: Evidence, figure: str, otherwise: str = "nothing was measured.") -> str:
    """Why a figure is not known."""
    log = evidence.tables.run.machine
    return "nobody looked." if log is None else log.reasons.get(figure, otherwise)


def _fell_percent(spans: list[MachineSpan]) -> float | None:
    """By how much the clock rate fell from the first third of the spans to the last; None where that is not known.

    Where the machine was less busy at the end it is 0: a clock rate that follows the load is no defect.
    """
    known = [span for span in spans if span.mhz_min is not None and span.mhz_max is not None]
    third = len(known) // 3
    if third < THIRD:
        return None
    first, last = known[:third], known[-third:]
    if _busy(last) < LESS_BUSY * _busy(first):
        return 0.0
    before, after = (sum(_mhz(span) for span in part) / third for part in (first, last))
    return 100 * max(0.0, 1 - after / before)


def _mhz(span: MachineSpan) -> float:
    return ((span.mhz_min or 0.0) + (span.mhz_max or 0.0)) / 2


def _busy(spans: list[MachineSpan]) -> float:
    return sum(span.busy_ns for span in spans) / max(1, sum(span.cpu_ns for span in spans))
