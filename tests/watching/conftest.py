"""The servers and sources of the tests of `transport`."""

from tests.transport.conftest import Make, make, secure, server, threads

__all__ = ["Make", "make", "secure", "server", "threads"]
