"""Bugs that are planted on purpose, one at a time, and the tests that must object to each."""
