"""``dyninformer count``."""

from __future__ import annotations

from pathlib import Path

import pytest

from dyninformer import DynamicSharedInformerFactory
from dyninformer.cli.count import LiveCount, SeveralCounts, Tally
from dyninformer.testing import ApiServer
from dyninformer.threads import Flag
from dyninformer.types import Object
from tests.cli.conftest import CRDS, Either, Run
from tests.cli.terminal import running
from tests.conformance.wire import until
from tests.fleet.clusters import PATIENCE, config_map

ISSUER = ".spec.issuerRef.name"


def certificate(name: str, issuer: str) -> dict[str, object]:
    """A certificate in prod."""
    return {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": name, "namespace": "prod"},
        "spec": {"secretName": name, "dnsNames": ["a.b"], "issuerRef": {"name": issuer}},
    }


def test_groups_are_counted_once_where_there_is_no_terminal(run_either: Run) -> None:
    """Unless it is told to follow; equal counts stand in the order of their values."""
    result = run_either("count", "certificates", "-A", "--by", ISSUER)
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["COUNT", "ISSUERREF.NAME"],
        ["1", "internal-ca"],
        ["1", "letsencrypt"],
    ]


def test_several_paths_make_groups_of_all_their_values(run: Run) -> None:
    """What is not there is a value, too; without a path it is the namespace."""
    count = ("count", "cert", "-A", "--no-headers", "--once")
    result = run(*count, "--by", ".metadata.namespace", "--by", ".spec.nothing")
    assert result.stdout.split() == ["2", "prod", "<none>"]
    assert run(*count).stdout.split() == ["2", "prod"]


def test_a_spreadsheet_gets_text_and_no_formulas(server: ApiServer, run: Run) -> None:
    """As comma-separated values."""
    server.create(certificate("evil", "=1+1,2"))
    try:
        shown = run("count", "cert", "-n", "prod", "--by", ISSUER, "--once", "-o", "csv").stdout
    finally:
        server.delete("certificates/evil", "prod")
    assert shown.splitlines() == [
        "COUNT,ISSUERREF.NAME",
        '1,"\'=1+1,2"',
        "1,internal-ca",
        "1,letsencrypt",
    ]


@pytest.mark.parametrize(
    ("args", "said"),
    [(["--by", "{.spec"], "}"), (["-o", "yaml"], "table, csv"), (["-o", "csv=A:.b"], "table, csv")],
)
def test_wrong_usage_is_said_at_once(run: Run, args: list[str], said: str) -> None:
    """Before anything is asked."""
    result = run("count", "cert", *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_on_a_terminal_the_table_follows_the_cluster_until_it_is_interrupted(
    either: Either, tmp_path: Path
) -> None:
    """An object that changes its group leaves the old one; Ctrl-C ends with 130."""
    kubeconfig = either.kubeconfig(tmp_path / "config")
    args = ("count", "cert", "-n", "prod", "--by", ISSUER)
    with running(kubeconfig, *args, terminal=True) as count:
        count.shows(r"1 +letsencrypt")
        count.shows(r"certificates\.v1\.cert-manager\.io: 2")  # however narrow the table is
        either.create(certificate("third", "letsencrypt"))
        count.shows(r"2 +letsencrypt")
        either.delete("certificates/third", "prod")
        count.shows(r"(?s)2 +letsencrypt.*1 +letsencrypt")
        count.interrupt()
        assert count.ends() == 130
        assert "Traceback" not in count.output


def test_on_a_dumb_terminal_each_change_is_a_table_of_its_own(
    either: Either, tmp_path: Path
) -> None:
    """TERM=dumb cannot take back what it shows, so nothing would ever be drawn there."""
    kubeconfig = either.kubeconfig(tmp_path / "config")
    args = ("count", "cert", "-n", "prod", "--by", ISSUER)
    with running(kubeconfig, *args, terminal=True, kind="dumb") as count:
        count.shows(r"1 +letsencrypt")
        either.create(certificate("third", "letsencrypt"))
        count.shows(r"2 +letsencrypt")
        either.delete("certificates/third", "prod")
        count.shows(r"(?s)2 +letsencrypt.*1 +letsencrypt")
        count.interrupt()
        assert count.ends() == 130


def test_in_a_pipe_each_change_is_a_table_of_its_own(either: Either, tmp_path: Path) -> None:
    """Behind a blank line; updates that change no count are none."""
    kubeconfig = either.kubeconfig(tmp_path / "config")
    with running(kubeconfig, "count", "cert", "-w", "-n", "prod", "--by", ISSUER) as count:
        count.shows(r"COUNT +ISSUERREF.NAME\n1 +internal-ca\n1 +letsencrypt\n")
        either.patch("certificates/shop", {"metadata": {"labels": {"not": "counted"}}}, "prod")
        either.create(certificate("third", "letsencrypt"))
        count.shows(r"\n\nCOUNT +ISSUERREF.NAME\n2 +letsencrypt\n1 +internal-ca\n")
        either.delete("certificates/third", "prod")
        shown = count.shows(r"(?s)2 +letsencrypt.*\n\nCOUNT.*\n1 +letsencrypt\n")
        assert shown.count("COUNT") == 3
        count.close_output()
        assert count.ends() == 0
        assert count.errors == ""


def test_it_goes_on_through_a_restart_of_the_server(tmp_path: Path) -> None:
    """And says so on stderr."""
    with ApiServer() as own:
        own.install(CRDS)
        kubeconfig = own.kubeconfig(tmp_path / "config")
        with running(kubeconfig, "count", "cert", "-w", "-n", "prod", "--by", ISSUER) as count:
            count.shows(r"1 +letsencrypt\n")
            own.stop()
            count.shows("disconnected since", on_stderr=True)
            own.start()
            own.create(certificate("third", "letsencrypt"))
            count.shows(r"2 +letsencrypt\n")
            count.shows("connected again", on_stderr=True)


def test_an_object_that_changes_its_group_leaves_the_old_one() -> None:
    """A group without objects is gone."""
    tally = Tally([".phase"])
    tally.add({"phase": "Pending"})
    tally.remove({"phase": "Pending"})
    tally.add({"phase": "Running"})
    assert tally.rows() == [["1", "Running"]]
    assert tally.total == 1


def test_a_path_that_does_not_fit_an_object_counts_as_nothing() -> None:
    """An index into what is no list is no failure of the count."""
    tally = Tally([".spec[0]", ".hosts[*]"])
    tally.add({"spec": {"a": 1}, "hosts": ["a", "b"]})
    assert tally.rows() == [["1", "<none>", "a"], ["1", "<none>", "b"]]


def test_each_value_of_a_list_is_counted(run: Run) -> None:
    """An object counts once under each of its values."""
    count = ("count", "cert", "-A", "--no-headers", "--once", "--by", ".spec.dnsNames[*]")
    rows = sorted(line.split() for line in run(*count).stdout.splitlines())
    assert len(rows) > 2
    assert all(len(row) == 2 and "," not in row[1] for row in rows)


def test_an_object_that_goes_leaves_each_of_its_groups() -> None:
    """And is one object less, however many values it had."""
    shop = {"hosts": ["a", "b"]}
    tally = Tally([".hosts[*]"])
    tally.add(shop)
    tally.add({"hosts": ["b", "b"]})
    assert tally.total == 2
    tally.remove(shop)
    assert (tally.rows(), tally.total) == ([["1", "b"]], 1)


def test_what_changes_while_several_counts_are_read_is_shown_next() -> None:
    """It may be in the count of a cluster that was read already."""
    changed, maps = Flag(), Tally([".metadata.name"])

    with ApiServer() as server, DynamicSharedInformerFactory(server.client()) as factory:

        class Meanwhile(Tally):
            """While this is read, another one changes."""

            def rows(self) -> list[list[str]]:
                server.create(config_map("new"))
                until(lambda: maps.total == 1, PATIENCE)
                return super().rows()

        def counted(resource: str, tally: Tally) -> LiveCount:
            def fits(_: Object) -> bool:
                return True

            return LiveCount(factory.for_resource(resource), tally, fits, changed)

        counts = SeveralCounts(
            {
                "eu": counted("v1/configmaps", maps),
                "us": counted("v1/secrets", Meanwhile([".metadata.name"])),
                "asia": counted("v1/services", Tally([".metadata.name"])),
            },
            changed,
        )
        factory.sync(PATIENCE)
        counts.wait_for_all()
        assert counts.rows() == ([], 0)
        assert counts.wait(PATIENCE)
