"""Which requests of a run are held against the server's log, on rows made by hand."""

from __future__ import annotations

import polars as pl
from bench.truth import comparable

from loadstone.sim.truth import TruthRow


def true(request: int, sent_ns: list[int] | None) -> TruthRow:
    return TruthRow(request_id=f"x-{request}", received_ns=1, read_ns=2, prompt_tokens=3, sent_ns=sent_ns)


def seen(*arrivals_ns: list[int]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "request_id": [f"x-{request}" for request in range(len(arrivals_ns))],
            "arrival_ns": arrivals_ns,
        },
        schema={"request_id": pl.String, "arrival_ns": pl.List(pl.Int64)},
    )


def test_a_request_goes_with_the_row_that_has_its_id_whatever_their_order() -> None:
    one, other = true(0, [5, 6]), true(1, [7, 8, 9])
    found = comparable(seen([15, 16], [17, 18, 19]), [true(9, [1]), other, one])
    assert [(row["arrival_ns"], log) for row, log in found] == [([15, 16], one), ([17, 18, 19], other)]


def test_what_cannot_be_compared_is_left_out_and_breaks_nothing() -> None:
    requests = seen([], [15, 16], [15, 16], [15], [15, 16])
    log = [true(0, None), true(1, [5]), true(3, [5]), true(4, [5, 6])]
    assert [row["request_id"] for row, _ in comparable(requests, log)] == ["x-4"]
