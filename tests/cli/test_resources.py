"""``dyninformer resources``."""

from __future__ import annotations

from tests.cli.conftest import Run


def test_a_resource_is_listed_with_its_spellings(run_either: Run) -> None:
    """Everything one needs to know to name it."""
    result = run_either("resources", "*.cert-manager.io", "--no-headers")
    assert result.exit_code == 0
    *told, verbs = result.stdout.split()
    assert told == [
        "certificates",
        "cert,certs",
        "certificate",
        "Certificate",
        "cert-manager.io/v1",
        "true",
    ]
    assert {"list", "watch"} <= set(verbs.split(","))


def test_a_filter_is_a_part_of_any_spelling(run_either: Run) -> None:
    """Of the kind, too, in any case."""
    shown = run_either("resources", "ipamb").stdout
    assert "IPAMBlock" in shown
    assert "certificates" not in shown
    assert run_either("resources", "IPAMBLOCK").stdout == shown


def test_a_filter_that_fits_nothing_says_so(run: Run) -> None:
    """On stderr; it is no failure."""
    result = run("resources", "nothing-like-it")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No resources fit 'nothing-like-it'.\n"
