"""Where changes are delivered: handlers and streams, each with its own ordered queue of changes."""
