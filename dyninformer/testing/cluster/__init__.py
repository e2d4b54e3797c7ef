"""The pure state of the embedded cluster: one log of writes, and what is read from it."""
