"""The process that reads the pages: it reads, tells, stores and ends, whatever the servers do."""

from __future__ import annotations

import json
import os
import signal
import socket
import time

import msgspec
import polars as pl
import pytest

from loadstone.child import Child
from loadstone.telemetry.job import Done, Finish, Job, Look, Looked, PageJob

from .conftest import PAGE, http

PATIENCE_S = 30.0


def page(server, name="page", serves=(0,), **more):
    address = (int(socket.AF_INET), ("127.0.0.1", server.port))
    request = b"GET /metrics HTTP/1.1\r\n\r\n"
    return PageJob(name=name, serves=serves, request=request, addresses=[address], **more)


@pytest.fixture
def scraping(tmp_path):
    """Starts the process on some pages."""
    children = []

    def start(*pages, interval_s=3600.0, **more):
        child = Child("loadstone.telemetry.scrape", tmp_path / "log")
        children.append(child)
        child.tell(Job(folder=str(tmp_path), interval_s=interval_s, pages=list(pages), **more))
        return child

    yield start
    for child in children:
        child.kill()
        child.close()


def look(child, number):
    child.tell(Look(number=number))
    assert msgspec.json.decode(child.hear_line(PATIENCE_S), type=Looked).number == number


def finished(child):
    child.tell(Finish())
    logs = msgspec.json.decode(child.hear_line(PATIENCE_S), type=Done).logs
    assert child.close() == 0
    return logs


def table(folder):
    return pl.read_parquet(folder / "server_metrics.parquet")


def test_a_page_is_read_at_once_when_asked_for_and_at_the_end(scraping, raw, tmp_path):
    counts = [http(f"n_total {count}\n") for count in (1, 2, 3, 4)]
    server = raw(*counts)
    child = scraping(page(server))
    look(child, 1)
    first = len(server.requests)  # the look may have come before the first read
    look(child, 2)
    [log] = finished(child)
    assert (log.page, log.serves, log.scrapes, log.failed) == ("page", (0,), len(server.requests), 0)
    assert len(server.requests) == first + 2
    found = table(tmp_path)
    assert found["value"].to_list() == [1.0, 2.0, 3.0, 4.0][: first + 2]
    assert found["at_ns"].is_sorted()
    assert (found["sent_ns"] < found["at_ns"]).all()
    assert (tmp_path / "log").read_text() == ""


def test_it_is_read_again_and_again(scraping, raw, tmp_path):
    server = raw(http(PAGE))
    child = scraping(page(server), interval_s=0.1)
    while len(server.requests) < 5:
        look(child, len(server.requests) + 1)
    assert finished(child)[0].scrapes >= 5


def test_a_page_that_is_not_there_is_asked_for_once(scraping, raw, tmp_path):
    server = raw(http("no", "404 Not Found"))
    child = scraping(page(server), interval_s=0.1)
    look(child, 1)
    look(child, 2)
    [log] = finished(child)
    assert (log.scrapes, log.failed, log.given_up) == (0, 1, True)
    assert [(fault.http_status, fault.fault, fault.count) for fault in log.faults] == [(404, "HTTP 404", 1)]
    assert len(server.requests) == 1
    assert not (tmp_path / "server_metrics.parquet").exists()


def test_a_page_that_never_comes_is_given_up_after_three_attempts(scraping, raw):
    server = raw(http("<html>\n"))
    child = scraping(page(server), interval_s=0.1)
    number = 0
    while len(server.requests) < 3:
        look(child, number := number + 1)
    [log] = finished(child)
    assert (log.scrapes, log.failed, log.given_up) == (0, 3, True)
    assert [(fault.fault, fault.count) for fault in log.faults] == [("it is not in Prometheus's format", 3)]


def test_a_page_that_was_there_once_is_asked_for_to_the_end(scraping, raw, tmp_path):
    bad = http("", "500 Internal Server Error")
    server = raw(http("a 1\n"), *[bad] * 5, http("a 2\n"))
    child = scraping(page(server), interval_s=0.1)
    while len(server.requests) < 8:
        look(child, len(server.requests) + 1)
    [log] = finished(child)
    assert not log.given_up
    assert log.failed == 5
    assert [(fault.fault, fault.count) for fault in log.faults] == [("HTTP 500", 5)]
    assert table(tmp_path)["value"][:2].to_list() == [1.0, 2.0]


def test_a_slow_page_keeps_neither_the_others_nor_the_end_waiting(scraping, raw, tmp_path):
    slow, quick = raw(None), raw(http("a 1\n"))
    child = scraping(page(slow, "slow"), page(quick, "quick"))
    look(child, 1)
    logs = finished(child)
    assert [(log.page, log.scrapes > 0) for log in logs] == [("slow", False), ("quick", True)]
    assert set(table(tmp_path)["target"]) == {"quick"}


def test_nothing_is_lost_when_main_is_gone(scraping, raw, tmp_path):
    child = scraping(page(raw(http("a 1\n"))))
    look(child, 1)
    child.dismiss()
    child.hear_line(PATIENCE_S)
    assert child.close() == 0
    assert set(table(tmp_path)["value"]) == {1.0}


def test_little_is_lost_when_it_is_killed(scraping, raw, tmp_path):
    counts = [http(f"a {count}\n") for count in range(1, 100)]
    child = scraping(page(raw(*counts)), interval_s=0.1, keep_s=0.1)
    look(child, 1)
    kept = tmp_path / "server_metrics.parquet"
    deadline = time.monotonic() + PATIENCE_S
    while not kept.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child.kill()
    child.close()
    found = table(tmp_path)["value"].to_list()
    assert found
    assert found == [float(count) for count in range(1, len(found) + 1)]


def test_nothing_is_stored_before_a_phase_begins(scraping, raw, tmp_path):
    server = raw(http("a 1\n"))
    child = scraping(page(server), interval_s=0.1, keep_s=0.001)
    while len(server.requests) < 5:
        time.sleep(0.01)
    child.kill()
    child.close()
    assert not (tmp_path / "server_metrics.parquet").exists()


def test_the_terminals_interrupt_is_not_for_it(scraping, raw):
    child = scraping(page(raw(http("a 1\n"))))
    look(child, 1)
    os.kill(child.pid, signal.SIGINT)
    assert finished(child)[0].scrapes >= 2


def test_it_gives_way_to_everybody(scraping, raw):
    child = scraping(page(raw(http("a 1\n"))))
    look(child, 1)
    assert os.getpriority(os.PRIO_PROCESS, child.pid) == 19


def test_without_a_job_it_says_nothing(tmp_path):
    child = Child("loadstone.telemetry.scrape", tmp_path / "log")
    assert child.close() == 0
    assert (tmp_path / "log").read_text() == ""


def test_numbers_of_a_page_that_changes_its_form_go_to_their_series(scraping, raw, tmp_path):
    server = raw(http('a{x="1"} 1\nb 2\n'), http('b 3\na{x="1"} 4\na{x="2"} 5\n'))
    child = scraping(page(server))
    look(child, 1)
    finished(child)
    found = table(tmp_path).select("sample", "labels", "value").rows()
    assert found[:5] == [
        ("a", json.dumps({"x": "1"}, separators=(",", ":")), 1.0),
        ("b", "{}", 2.0),
        ("b", "{}", 3.0),
        ("a", '{"x":"1"}', 4.0),
        ("a", '{"x":"2"}', 5.0),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        http("Bearer sk-hunter2 \x1b[31m\n"),
        http("x", "200 OK", "Content-Encoding: sk-hunter2"),
        http("sk-hunter2", "403 sk-hunter2"),
        b"sk-hunter2 \x1b[31m\r\n\r\n",
        http('a{key="sk-hunter2"} 1\n'),
        http("a 1\nb{sk-hunter2} 1\n"),
    ],
)
def test_what_a_page_repeats_of_a_secret_is_stored_and_told_nowhere(scraping, raw, tmp_path, answer):
    server = raw(answer)
    child = scraping(page(server, hidden=["sk-hunter2"]))
    look(child, 1)
    told = str(finished(child))
    stored = [str(table(tmp_path).rows())] if (tmp_path / "server_metrics.parquet").exists() else []
    for text in (told, *stored, (tmp_path / "log").read_text()):
        assert "hunter2" not in text
        assert "\x1b" not in text
