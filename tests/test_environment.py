from __future__ import annotations

import os
import socket

import msgspec
import psutil
import pytest

from loadstone import environment


def test_the_host_is_described_in_plain_data():
    host = environment.host()
    assert msgspec.json.decode(msgspec.json.encode(host)) == host
    assert host["python"].startswith("3.")
    assert host["cores"] == os.cpu_count()
    assert 1 <= host["usable_cores"] <= host["cores"]
    assert host["memory_bytes"] == psutil.virtual_memory().total
    assert {"loadstone", "httptools", "numpy"} <= host["packages"].keys()
    assert all(host["packages"].values())
    assert host["cpu"]


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1"])
def test_the_loopback_is_local(address):
    assert environment.is_local(address)


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "example.com", ""])
def test_others_are_not(address):
    assert not environment.is_local(address)


def test_an_address_of_an_interface_is_local(monkeypatch):
    entry = type("Entry", (), {"address": "fe80::7%eth9"})
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: {"eth9": [entry]})
    assert environment.is_local("fe80::7%eth1")
    assert not environment.is_local("fe80::8")


def test_every_own_address_is_local():
    for entries in psutil.net_if_addrs().values():
        for entry in entries:
            if entry.family in (socket.AF_INET, socket.AF_INET6):
                assert environment.is_local(entry.address)


def test_busy_time_is_part_of_all_time():
    busy, total = environment.cpu_busy_s()
    again_busy, again_total = environment.cpu_busy_s()
    assert 0 < busy < total
    assert (again_busy >= busy, again_total >= total) == (True, True)


def test_a_package_that_is_not_there_is_left_out(monkeypatch):
    monkeypatch.setattr(environment, "PACKAGES", ("loadstone", "no-such-package"))
    assert list(environment.host()["packages"]) == ["loadstone"]
