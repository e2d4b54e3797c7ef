"""An embedded Kubernetes API server for tests: real HTTP on loopback, no cluster needed."""

from dyninformer.testing.api_server import ApiServer
from dyninformer.testing.status import ApiError

__all__ = ["ApiError", "ApiServer"]
