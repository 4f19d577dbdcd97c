"""The built-in engine behind a real HTTP server: for demos, for tests, and for the truth about a run."""
