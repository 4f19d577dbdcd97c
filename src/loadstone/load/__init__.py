"""The hot path: workers that keep time, send bytes, and store what arrives with its stamps."""
