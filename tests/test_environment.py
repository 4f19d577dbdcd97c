from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys

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


def test_a_package_that_is_not_there_is_left_out(monkeypatch):
    monkeypatch.setattr(environment, "PACKAGES", ("loadstone", "no-such-package"))
    assert list(environment.host()["packages"]) == ["loadstone"]


def test_the_limit_on_descriptors_is_raised_for_the_children_too():
    code = """
import resource, subprocess, sys
from loadstone.environment import raise_descriptor_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 150))
print(raise_descriptor_limit(), flush=True)
subprocess.run([sys.executable, "-c", "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))"], check=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "150\n(150, 150)\n"


def test_a_limit_that_cannot_be_raised_is_the_limit(monkeypatch):
    def refused(*_):
        raise ValueError

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refused)
    assert environment.raise_descriptor_limit() == 256


def test_ports_are_counted_where_the_system_tells(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "PORTS", tmp_path / "range")
    assert environment.local_ports() is None
    (tmp_path / "range").write_text("32768\t60999\n")
    assert environment.local_ports() == 28_232
