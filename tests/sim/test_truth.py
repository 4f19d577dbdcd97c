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
