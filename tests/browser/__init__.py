"""Notebooks in a real browser that talks to this machine alone."""
