"""What is said of a write that the server refuses."""

from __future__ import annotations

import pytest

from dyninformer.resource import GroupVersionResource
from dyninformer.writing import Write, refused

CERTIFICATES = GroupVersionResource("cert-manager.io", "v1", "certificates")
RESOURCE = 'resource "certificates" in API group "cert-manager.io"'


@pytest.mark.parametrize(
    ("why", "advised"),
    [
        (f'User "a" cannot patch {RESOURCE} in the namespace "prod"', True),
        (f'User "a" cannot patch {RESOURCE} at the cluster scope', True),
        (f'User "a" cannot patch {RESOURCE} at the cluster scope: RBAC: role "x" not found', True),
        (f'User "a" cannot patch {RESOURCE} in the namespace "prod": read-only', False),
        ("create not allowed while custom resource definition is terminating", False),
    ],
)
def test_a_right_is_advised_where_the_server_gives_no_other_reason(why: str, advised: bool) -> None:
    """RBAC only says who may not do what; other authorizers and admission say why."""
    message = f'certificates.cert-manager.io "shop" is forbidden: {why}'
    status = {"kind": "Status", "message": message}
    error = str(refused(CERTIFICATES, Write("patch", "prod/shop", {}), 403, status))
    assert why in error
    assert error.endswith("Give it patch on certificates") is advised
