"""What is sent and when, as data, written down before the clock starts."""
