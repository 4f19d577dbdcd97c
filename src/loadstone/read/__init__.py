"""From the recording to tables: framing, decoding, outcomes."""
