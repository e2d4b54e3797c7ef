"""An embedded Kubernetes API server for tests: real HTTP on loopback, no cluster needed."""
