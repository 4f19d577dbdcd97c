"""Protocols without I/O: bytes in, events out."""
