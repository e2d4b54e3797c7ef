"""Tests of the connections to an API server."""
