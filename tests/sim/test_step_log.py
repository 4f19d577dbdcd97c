from __future__ import annotations

from pathlib import Path

from loadstone.sim.step_log import StepFile, StepRow, read_steps


def test_steps_are_read_back_and_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "steps"
    file = StepFile(path)
    rows = [StepRow(due_ns=at, begun_ns=at + 1, sent_ns=at + 2, sequences=300) for at in (10, 20)]
    for row in rows:
        file.add(row)
    file.close()
    with path.open("ab") as torn:
        torn.write(b'{"due_ns":30,')
    assert read_steps(path) == rows
