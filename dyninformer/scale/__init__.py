"""Many machines: shards of a collection shared among replicas, and one that leads."""
