"""Requests to one API server: an event loop in a thread, HTTP/2 and HTTP/1.1 over TCP and TLS."""
