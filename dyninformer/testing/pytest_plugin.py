"""Fixtures for tests that need a Kubernetes API server."""
