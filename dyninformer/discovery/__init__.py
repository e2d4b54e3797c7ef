"""Any spelling of a resource -> group, version, resource, scope, kind and printer columns."""

from dyninformer.discovery.discovery_client import RefusedError
from dyninformer.discovery.lookup import Discovery
from dyninformer.discovery.resources import PrinterColumn, ResolvedResource

__all__ = ["Discovery", "PrinterColumn", "RefusedError", "ResolvedResource"]
