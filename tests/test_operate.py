"""What examples/operate has for operators fits the metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dyninformer.metrics import COUNTERS, GAUGES, HISTOGRAMS
from tests.documents import ROOT

OPERATE = ROOT / "examples" / "operate"
PAGE = ROOT / "docs" / "operating.md"
TOLD_AT_THE_END = {"dropped_events"}
"""Nobody scrapes it: its series ends in that moment. Metrics that are told have it."""
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed (Debian: apt-get install prometheus)"
)
_METRIC = re.compile(r"\bdyninformer_(\w+)")


def rules() -> list[Any]:
    """The alert rules."""
    (group,) = yaml.safe_load((OPERATE / "alerts.yaml").read_text("utf-8"))["groups"]
    return list(group["rules"])


def expressions() -> Iterator[str]:
    """All that the dashboard asks Prometheus for, as Grafana sends it."""
    dashboard = json.loads((OPERATE / "dashboard.json").read_text("utf-8"))
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            text = target["expr"].replace("$__rate_interval", "5m")
            yield re.sub(r"\$(cluster|resource)\b", ".*", text)


def series() -> set[str]:
    """The names that a scrape may have, without their beginning."""
    parts = {f"{name}_{part}" for name in HISTOGRAMS for part in ("bucket", "sum", "count")}
    return {f"{name}_total" for name in COUNTERS} | GAUGES.keys() | parts


def metrics_in(*texts: str) -> set[str]:
    """The names of ours in some texts."""
    return {name for text in texts for name in _METRIC.findall(text)}


def promtool(*arguments: object, cwd: Path = OPERATE) -> None:
    """It is content."""
    command = [str(PROMTOOL), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_that_the_dashboard_and_the_alerts_name_exists() -> None:
    """A name that nobody reports would be an empty panel, or an alert that never fires."""
    asked = [*expressions(), *(rule["expr"] for rule in rules())]
    assert metrics_in(*asked) <= series()


def test_the_dashboard_shows_every_metric() -> None:
    """Except what ends in the moment in which it is told."""
    shown = {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in metrics_in(*expressions())}
    assert shown == (COUNTERS.keys() | GAUGES.keys() | HISTOGRAMS.keys()) - TOLD_AT_THE_END


def test_the_page_for_operators_has_every_metric_and_every_alert() -> None:
    """With what it says, and what to do."""
    page = PAGE.read_text("utf-8")
    rows = set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE))
    names = COUNTERS.keys() | GAUGES.keys() | HISTOGRAMS.keys()
    assert names | {rule["alert"] for rule in rules()} <= rows


def test_every_alert_says_what_to_do_and_has_both_its_tests() -> None:
    """One in which it fires, and one in which it does not."""
    tests = (OPERATE / "alerts_test.yaml").read_text("utf-8")
    for rule in rules():
        assert rule["annotations"]["runbook"].endswith("."), rule["alert"]
        assert f"# {rule['alert']} fires\n" in tests
        assert f"# {rule['alert']} does not fire\n" in tests


@needs_promtool
def test_promtool_takes_the_rules_and_their_tests_pass() -> None:
    """By Prometheus' own measure."""
    promtool("check", "rules", "alerts.yaml")
    promtool("test", "rules", "alerts_test.yaml")


@needs_promtool
def test_every_expression_of_the_dashboard_is_promql(tmp_path: Path) -> None:
    """Each is made a rule, which promtool parses."""
    recorded = [{"record": f"panel:{n}", "expr": text} for n, text in enumerate(expressions())]
    rules = {"groups": [{"name": "dashboard", "rules": recorded}]}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules), "utf-8")
    promtool("check", "rules", "rules.yaml", cwd=tmp_path)
