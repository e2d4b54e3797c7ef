"""The source that makes requests on an event loop, beside what both sources share."""

from __future__ import annotations

from pathlib import Path

import pytest

from dyninformer.testing import ApiServer
from dyninformer.transport.source import Source
from tests.transport.wires import LIST, names, whole


@pytest.mark.parametrize("given", ["kubeconfig", "client"])
def test_http2_is_offered_wherever_the_settings_come_from(
    secure: ApiServer, tmp_path: Path, given: str
) -> None:
    """A plain kubeconfig is read without the official client, and a client by its Configuration."""
    if given == "kubeconfig":
        source = Source(kubeconfig=secure.kubeconfig(tmp_path / "config"))
    else:
        source = Source(secure.client())
    try:
        assert names(whole(source.list(LIST))) == ["a"]
        assert [each.http_version for each in secure.requests] == ["2"]
    finally:
        source.close()
        source.join(5)
