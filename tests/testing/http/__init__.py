"""The socket side, with a scripted API behind it."""
