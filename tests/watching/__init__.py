"""Tests of the conversation with the API server."""
