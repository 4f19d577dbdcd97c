"""A run on a virtual clock: the same plan through the same engine, without sockets and without waiting."""
