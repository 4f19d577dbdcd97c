from __future__ import annotations

from pathlib import Path

from loadstone.sim.truth import TruthFile, TruthRow, read_truth


def row(request_id: str) -> TruthRow:
    return TruthRow(request_id=request_id, received_ns=1, read_ns=2, prompt_tokens=3)


def test_what_was_added_is_read_back(tmp_path: Path) -> None:
    file = TruthFile(tmp_path / "truth")
    file.add(row("a"))
    file.add(row('"\n\u001b'))
    file.flush()
    assert read_truth(tmp_path / "truth") == [row("a"), row('"\n\u001b')]
    file.close()


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    file = TruthFile(tmp_path / "truth")
    file.add(row("a"))
    file.close()
    with (tmp_path / "truth").open("ab") as torn:
        torn.write(b'{"request_id":"b","rec')
    assert read_truth(tmp_path / "truth") == [row("a")]


def test_what_the_engine_did_is_kept_with_the_rest(tmp_path: Path) -> None:
    file = TruthFile(tmp_path / "truth")
    whole = TruthRow(
        request_id="a", received_ns=1, read_ns=2, scheduled_ns=3, first_sent_ns=4, last_sent_ns=9, sent_ns=[4, 9],
        prompt_tokens=40, cached_tokens=32, tokens=2, preemptions=1, engine=0, end="stop",
    )  # fmt: skip
    file.add(whole)
    file.close()
    assert read_truth(tmp_path / "truth") == [whole]


def test_what_did_not_come_to_the_engine_is_unknown_there() -> None:
    found = row("a")
    assert (found.scheduled_ns, found.cached_tokens, found.preemptions, found.engine) == (None,) * 4
    assert found.sent_ns is None
