from __future__ import annotations

from loadstone.read.faults import KINDS, SAMPLE_BYTES, Evidence, Sample, samples


def test_the_index_tells_which_file_shows_what(tmp_path):
    folder = tmp_path / "faults"
    Evidence(folder).keep("reset", "gone after 17 bytes", "r-3", [b"HTTP", b"/1.1"])
    assert samples(folder) == [
        Sample(
            outcome="reset", kind="gone after # bytes", fault="gone after 17 bytes", file="reset-1.http",
            request_id="r-3",
        )
    ]  # fmt: skip
    assert (folder / "reset-1.http").read_bytes() == b"HTTP/1.1"


def test_two_decoders_do_not_overwrite_each_other(tmp_path):
    for number in range(2):
        Evidence(tmp_path).keep("reset", "gone", f"r-{number}", [b"%d" % number])
    assert [sample.file for sample in samples(tmp_path)] == ["reset-1.http", "reset-2.http"]
    assert (tmp_path / "reset-2.http").read_bytes() == b"1"


def test_kinds_and_sizes_are_bounded(tmp_path):
    evidence = Evidence(tmp_path)
    for number in range(KINDS + 5):
        evidence.keep("reset", "x" * (number + 1), "r", [bytes(SAMPLE_BYTES), b"more"])
    assert len(samples(tmp_path)) == KINDS
    assert (tmp_path / "reset-1.http").stat().st_size == SAMPLE_BYTES


def test_without_a_response_there_is_nothing_to_keep(tmp_path):
    Evidence(tmp_path / "faults").keep("connect", "refused", "r", [])
    assert not (tmp_path / "faults").exists()
    assert samples(tmp_path / "faults") == []


def test_an_echoed_secret_is_overwritten_wherever_the_reads_cut_it():
    reads = [b"no access with sk-se", b"cret-1, sk-secret-1", b""]
    assert without(reads, ["sk-secret-1", "no"]) == [b"no access with *****", b"******, ***********", b""]
