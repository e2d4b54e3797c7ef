"""``dyninformer get -w``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from dyninformer.testing import ApiServer
from tests.cli.conftest import CRDS, Either
from tests.cli.terminal import running

SHOP = "certificates/shop"
GET = ("get", "cert", "-n", "prod")


@contextmanager
def changed(server: Either) -> Iterator[None]:
    """The shop's secret is another one, for as long as the block runs."""
    server.patch(SHOP, {"spec": {"secretName": "another-tls"}}, "prod")
    try:
        yield
    finally:
        server.patch(SHOP, {"spec": {"secretName": "shop-tls"}}, "prod")


def test_rows_are_added_as_objects_change(either: Either, tmp_path: Path) -> None:
    """Below those that were there, which line up; Ctrl-C ends with 130."""
    kubeconfig = either.kubeconfig(tmp_path / "config")
    with running(kubeconfig, *GET, "-w") as get:
        shown = get.shows(r"NAME.*\nmail .*\nshop .*\n")
        heading, mail, shop = shown.splitlines()
        assert heading.index("SECRET") == mail.index("mail-tls") == shop.index("shop-tls")
        with changed(either):
            get.shows(r"\nshop +another-tls .*\n")
        get.shows(r"another-tls .*\nshop +shop-tls .*\n")
        get.interrupt()
        assert get.ends() == 130
        assert get.errors == ""


def test_a_terminal_gets_the_same(either: Either, tmp_path: Path) -> None:
    """Without colours: nothing says which row is new but its place."""
    kubeconfig = either.kubeconfig(tmp_path / "config")
    with running(kubeconfig, *GET, "shop", "-w", terminal=True) as get:
        get.shows(r"NAME.*\r\nshop +shop-tls")
        with changed(either):
            get.shows(r"\nshop +another-tls")
        get.interrupt()
        assert get.ends() == 130
        assert "Traceback" not in get.output


def test_only_what_changes_with_what_happened(either: Either, tmp_path: Path) -> None:
    """A name that is not there is said to lack, and shown when it comes and goes."""
    kubeconfig = either.kubeconfig(tmp_path / "config")
    args = (*GET, "shop", "later", "--watch-only", "--output-watch-events")
    with running(kubeconfig, *args, "-o", "custom-columns=N:.metadata.name") as get:
        get.shows("^not there yet: later\n$", on_stderr=True)
        later = either.get(SHOP, "prod")
        later["metadata"] = {"name": "later", "namespace": "prod"}
        either.create(later)
        either.delete("certificates/later", "prod")
        get.shows("^EVENT      N\nADDED      later\nDELETED    later\n$")


def parsed(output: str, form: str) -> list[Any]:
    """The documents that were printed."""
    if form == "yaml":
        return list(yaml.safe_load_all(output))
    found, decoder = [], json.JSONDecoder()
    while output := output.lstrip():
        document, end = decoder.raw_decode(output)
        found.append(document)
        output = output[end:]
    return found


@pytest.mark.parametrize(
    ("form", "events"), [("json", True), ("yaml", True), ("yaml", False), ("ndjson", False)]
)
def test_a_program_gets_a_document_per_change(
    server: ApiServer, kubeconfig: Path, form: str, events: bool
) -> None:
    """The object, or the event as the watch protocol has it."""
    more = ["--output-watch-events"] if events else []
    with running(kubeconfig, *GET, "shop", "-w", "-o", form, *more) as get:
        get.shows("shop-tls")
        with changed(server):
            get.shows("another-tls")
        get.shows("(?s)another-tls.*shop-tls")
        get.interrupt()
        assert get.ends() == 130
    told = parsed(get.output, form)
    if events:
        assert [each["type"] for each in told] == ["ADDED", "MODIFIED", "MODIFIED"]
        told = [each["object"] for each in told]
    secrets = [each["spec"]["secretName"] for each in told]
    assert secrets == ["shop-tls", "another-tls", "shop-tls"]
    assert not any("managedFields" in each["metadata"] for each in told)


def test_names_and_csv_are_a_line_per_change(server: ApiServer, kubeconfig: Path) -> None:
    """As get prints them."""
    with (
        running(kubeconfig, *GET, "shop", "-w", "-o", "name") as names,
        running(kubeconfig, *GET, "shop", "-w", "-o", "csv=S:.spec.secretName") as csv,
    ):
        names.shows("shop")
        csv.shows("S\r\nshop-tls\r\n")
        with changed(server):
            csv.shows("another-tls\r\n")
        csv.shows("another-tls\r\nshop-tls\r\n")
        names.shows("^(certificate.cert-manager.io/shop\n){3}$")


def test_it_survives_a_restart_and_says_so(tmp_path: Path) -> None:
    """What changed meanwhile is shown; a reader that leaves ends it."""
    with ApiServer() as own:
        own.install(CRDS)
        kubeconfig = own.kubeconfig(tmp_path / "config")
        with running(kubeconfig, *GET, "shop", "-w") as get:
            get.shows("shop-tls")
            own.stop()
            get.shows("disconnected since", on_stderr=True)
            own.start()
            own.patch(SHOP, {"spec": {"secretName": "another-tls"}}, "prod")
            get.shows("shop +another-tls")
            get.close_output()
            assert get.ends() == 0


def test_nothing_to_show_yet_is_said_on_stderr(kubeconfig: Path) -> None:
    """So that nobody wonders at an empty screen."""
    with running(kubeconfig, "get", "cert", "-n", "kube-public", "-w") as get:
        get.shows("^No resources found yet\n$", on_stderr=True)
        get.interrupt()
        assert get.ends() == 130
        assert get.output == ""
