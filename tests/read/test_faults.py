from __future__ import annotations

import pytest

from loadstone.read.faults import INDEX, KINDS, SAMPLE_BYTES, Evidence, Sample, samples


def keep(evidence, outcome, fault, raw=b"", request_id="r-0"):
    if evidence.wants(outcome, fault):
        evidence.keep(outcome, fault, request_id, raw)


def test_the_index_tells_which_file_shows_what(tmp_path):
    folder = tmp_path / "faults"
    keep(Evidence(folder), "reset", "gone after 17 bytes", b"HTTP/1.1", "r-3")
    assert samples(folder) == [
        Sample(
            outcome="reset", kind="gone after # bytes", fault="gone after 17 bytes", file="reset-1.http",
            request_id="r-3",
        )
    ]  # fmt: skip
    assert (folder / "reset-1.http").read_bytes() == b"HTTP/1.1"


def test_two_decoders_do_not_overwrite_each_other(tmp_path):
    decoders = [Evidence(tmp_path), Evidence(tmp_path)]
    for number, evidence in enumerate(decoders):
        keep(evidence, "reset", "gone", b"%d" % number)
    assert [sample.file for sample in samples(tmp_path)] == ["reset-1.http", "reset-2.http"]
    assert (tmp_path / "reset-2.http").read_bytes() == b"1"


def test_one_sample_of_a_kind_also_for_a_decoder_that_comes_later(tmp_path):
    for number in range(3):
        keep(Evidence(tmp_path), "reset", f"gone after {number} bytes", b"x")
    assert [sample.fault for sample in samples(tmp_path)] == ["gone after 0 bytes"]


def test_kinds_and_sizes_are_bounded(tmp_path):
    evidence = Evidence(tmp_path)
    for number in range(KINDS + 5):
        keep(evidence, "reset", "x" * (number + 1), bytes(SAMPLE_BYTES) + b"more")
    assert len(samples(tmp_path)) == KINDS
    assert (tmp_path / "reset-1.http").stat().st_size == SAMPLE_BYTES


def test_without_a_response_there_is_a_line_and_no_file(tmp_path):
    folder = tmp_path / "faults"
    assert samples(folder) == []
    keep(Evidence(folder), "connect-refused", "nobody listens")
    (sample,) = samples(folder)
    assert (sample.outcome, sample.fault, sample.file) == ("connect-refused", "nobody listens", None)
    assert [path.name for path in folder.iterdir()] == [INDEX]


@pytest.mark.parametrize("torn", [b'{"outcome":"re', b"\xff\xfe", b'{"outcome":1}', b""])
def test_a_torn_line_of_the_index_is_none(tmp_path, torn):
    keep(Evidence(tmp_path), "reset", "gone")
    with (tmp_path / INDEX).open("ab") as index:
        index.write(torn)
    assert [sample.outcome for sample in samples(tmp_path)] == ["reset"]


def test_a_sample_that_cannot_be_stored_costs_nothing_else(tmp_path):
    evidence = Evidence(tmp_path / "nowhere" / "faults")
    keep(evidence, "reset", "gone", b"x")
    assert not evidence.wants("reset", "gone")
