"""Live, indexed, in-memory copies of any Kubernetes collection, as plain dicts."""
