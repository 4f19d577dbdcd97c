from __future__ import annotations

import pytest

from loadstone.machine.readings import (
    LACKS,
    NULLABLE,
    Readings,
    kernel_table,
    named_number,
    pressure_ns,
    readings,
    softnet_drops,
)

SNMP = "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm OutSegs RetransSegs InErrs\nTcp: 1 7249 12 0\n"
NETSTAT = "TcpExt: ListenDrops RcvPruned TCPBacklogDrop PruneCalled\nTcpExt: 3 4 5 100\n"
PRESSURE = (
    "some avg10=16.57 avg60=5.45 avg300=1.41 total=6865610\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
)


def test_a_table_of_the_kernel_has_names_and_numbers_in_two_rows():
    assert kernel_table(SNMP, "Tcp:", ("RetransSegs",)) == 12
    assert (
        kernel_table(NETSTAT, "TcpExt:", ("ListenDrops", "TCPBacklogDrop", "RcvPruned", "TCPRcvQDrop")) == 12
    )


@pytest.mark.parametrize("table", [None, "", "Tcp: RtoMin\nTcp: 5\n", "Tcp: RetransSegs\n"])
def test_a_table_without_the_column_tells_nothing(table):
    assert kernel_table(table, "Tcp:", ("RetransSegs",)) is None


def test_packets_dropped_are_hexadecimal_and_over_all_cores():
    assert softnet_drops("00000010 0000000a 00000001\n00005009 00000001 00000000\n") == 11
    assert softnet_drops(None) is None


def test_pressure_is_told_in_microseconds():
    assert pressure_ns(PRESSURE) == 6_865_610_000
    assert pressure_ns(None) is None


def test_a_number_stands_behind_its_whole_name():
    assert named_number("pswpinx 3\npswpin 7\n", "pswpin") == 7
    assert named_number("pgfault 7\n", "pswpin") is None


def test_what_is_not_there_is_none_and_has_a_reason(tmp_path):
    found = readings(proc=tmp_path, sys=tmp_path)
    lacking = {name for name in Readings._fields if getattr(found, name) is None}
    assert lacking - {"steal_ns"} == {*NULLABLE, "mhz"} - {"steal_ns"}
    assert lacking <= LACKS.keys()


def test_counters_of_this_machine_do_not_go_back():
    before, after = readings(), readings()
    for name in ("cpu_ns", "busy_ns", *NULLABLE):
        one, other = getattr(before, name), getattr(after, name)
        assert (one is None) == (other is None)
        assert one is None or other >= one
    assert 0 < after.busy_ns < after.cpu_ns


def test_the_clock_rate_is_the_mean_of_the_first_cores(tmp_path):
    (tmp_path / "cpuinfo").write_text("cpu MHz\t\t: 2000.5\nflags : x\ncpu MHz\t\t: 3000.5\n")
    assert readings(proc=tmp_path, sys=tmp_path).mhz == 2500.5
    for core, khz in ((0, 1_000_000), (1, 2_000_000)):
        folder = tmp_path / f"devices/system/cpu/cpu{core}/cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_cur_freq").write_text(f"{khz}\n")
    assert readings(proc=tmp_path, sys=tmp_path).mhz == 1500
