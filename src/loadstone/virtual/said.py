"""What the engines say of each request that they answered, in the form of the server's ground truth.

Written from the sequences alone, and not from what the client noted of them.
"""

from __future__ import annotations

from loadstone.sim.truth import TruthRow
from loadstone.virtual.servers import Call


def row(call: Call, request_id: str, way_ns: int = 0) -> TruthRow:
    """The truth of a call that has ended, or whose client has left. Its engine's clock is `way_ns` behind.

    No bytes are made, so none are counted. Times count from the beginning of the virtual clock.
    """
    asked = call.asked
    assert asked is not None, "the engine took it"
    sequences = call.sequences
    times = sorted(at_ns + way_ns for sequence in sequences for at_ns in sequence.times())
    over = not call.left
    sent = times if asked.stream else times[-1:] if over else []
    found = TruthRow(
        request_id=request_id,
        received_ns=call.sent_ns + way_ns,
        read_ns=call.sent_ns + way_ns,
        first_sent_ns=sent[0] if sent else None,
        last_sent_ns=sent[-1] if sent else None,
        sent_ns=list(sent) if asked.stream else None,
        scheduled_ns=min(
            (one.scheduled_ns + way_ns for one in sequences if one.scheduled_ns is not None), default=None
        ),
        prompt_tokens=asked.prompt_tokens,
        cached_tokens=sequences[0].cached_tokens,
        tokens=len(times) if asked.stream or over else 0,
        preemptions=sum(sequence.preemptions for sequence in sequences),
        engine=sequences[0].engine,
    )
    if over:
        found.end = asked.end
    return found
