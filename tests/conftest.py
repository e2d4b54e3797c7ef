"""What every room's tests may use."""

from __future__ import annotations

import pytest

from dyninformer.testing.pytest_plugin import need_real

pytest_plugins = ["pytester"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test marked ``real`` runs where a real kube-apiserver is at hand."""
    need_real(config, [item for item in items if item.get_closest_marker("real")])
