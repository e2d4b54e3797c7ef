"""Who is told: handlers and streams, each with its own ordered queue of changes."""
