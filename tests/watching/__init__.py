"""Tests of what is asked of the API server, and what is made of its answers."""
