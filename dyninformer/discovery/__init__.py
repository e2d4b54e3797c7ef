"""Any spelling of a resource -> group, version, resource, scope, kind and printer columns."""

from dyninformer.discovery.columns import PrinterColumn
from dyninformer.discovery.lookup import Discovery
from dyninformer.discovery.resources import ResolvedResource

__all__ = ["Discovery", "PrinterColumn", "ResolvedResource"]
