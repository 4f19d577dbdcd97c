"""The servers' own numbers beside ours: Prometheus pages read before, during and after a run."""
