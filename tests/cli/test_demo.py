"""``dyninformer demo``, and the pictures of it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dyninformer.cli import demo
from dyninformer.cli.demo.cluster import Story
from dyninformer.lister import GenericLister
from dyninformer.testing import ApiServer
from tests.cli.conftest import Run
from tests.cli.terminal import running
from tests.cli.test_main import EXAMPLE
from tests.documents import ROOT

EXAMPLES = ROOT / "examples" / "crd"
IMAGES = ROOT / "docs" / "images"
PICTURES = ("demo", "watch-diff")


def test_it_ends_by_itself_with_a_verdict_where_there_is_no_terminal(tmp_path: Path) -> None:
    """The example of the help: what happened, numbers, indexes, a diff; nothing on stderr."""
    *_, example = EXAMPLE.findall(str(demo.command.__doc__))
    with running(tmp_path, *shlex.split(example), "--manifests", str(EXAMPLES)) as shown:
        assert shown.ends() == 0
        assert shown.errors == ""
        for part in (
            r"kubectl --kubeconfig \S+ get certificates -A\n",
            r"\d\d:\d\d:\d\d the CRD of the certificates is deleted\n",
            r"\d\d:\d\d:\d\d the CRD is there again",
            r"\d\d:\d\d:\d\d the API server listens again",
            r"\n3 of 3 s were played: \d+ events, \d+ added, \d+ modified, \d+ deleted \(",
            r"  ISSUER +CERTIFICATES +READY +NOT READY\n  internal-ca +\d+ +\d+ +\d+\n",
            r"  HOST +BLOCKS +ADDRESSES IN USE\n  worker-1 +\d+ +\d+ of \d+\n",
            r"The last update:\n  \d\d:\d\d:\d\d MODIFIED \w+\.\S+/.*\n    [-+] \.",
            r"\nThe cache and the server agree, object for object \(certificates: \d+, ",
        ):
            assert re.search(part, shown.output), part
        assert "\x1b" not in shown.output


def test_a_cache_that_is_not_as_the_server_makes_exit_code_1(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the difference is named: here an object that the library has lost."""
    lost, whole = "shop-from-anywhere", GenericLister.__iter__
    monkeypatch.setattr(
        GenericLister,
        "__iter__",
        lambda lister: (obj for obj in whole(lister) if obj["metadata"]["name"] != lost),
    )
    result = run("demo", "--seconds", "1", "--objects", "4")
    assert result.exit_code == 1
    assert "The cache and the server DIFFER in 1 object (certificates: " in result.stdout
    assert f"  networkpolicies prod/{lost}: the cache does not have it\n" in result.stdout


def test_a_terminal_shows_it_live_until_ctrl_c(tmp_path: Path) -> None:
    """Tables, diffs and status in one picture; then the screen is given back, with a summary."""
    with running(tmp_path, "demo", "--seconds", "120", terminal=True) as shown:
        for part in (
            "LAST CHANGED",
            "INDEX BY .spec.issuerRef.name",
            "INDEX BY .spec.affinity",
            "MODIFIED\x1b",
            r"LAST DIFFS[^?]*\x1b\[32m  \+ \.",
            r"connected since .* \d+ objects",
        ):
            shown.shows(part)
        shown.interrupt()
        assert shown.ends() == 0
        live, left, after = shown.output.partition("\x1b[?1049l")
        assert left
        assert "\x1b[?1049h" in live
        assert re.search(r"\d+ of 120 s were played", after)
        assert "The cache and the server agree" in after
        assert "\x1b[3" not in after
        assert "Traceback" not in shown.output


def test_the_story_is_accepted_by_the_server_without_exception() -> None:
    """Each of its acts; what is refused is only passed over if somebody else was quicker."""
    with ApiServer() as server:
        server.install(EXAMPLES)
        story = Story(server, 8)
        story.begin()
        acts = story.acts()
        for act in acts:
            act.do()
        assert [act.at for act in acts] == sorted(act.at for act in acts)
        reasons = {
            condition["reason"]
            for certificate in server.list("certificates")
            for condition in certificate.get("status", {}).get("conditions", [])
        }
        assert reasons >= {"Ready", "DoesNotExist"}


def test_manifests_without_the_two_crds_are_refused(run: Run, tmp_path: Path) -> None:
    """The message says what is missing."""
    (tmp_path / "one.yaml").write_text((EXAMPLES / "certificates.yaml").read_text("utf-8"))
    result = run("demo", "--manifests", str(tmp_path))
    assert result.exit_code == 2
    assert "the demo is about ipamblocks.crd.projectcalico.org: " in result.stderr


def test_without_the_extra_it_says_what_to_install() -> None:
    """It needs the embedded server, which the extra ``cli`` alone does not bring."""
    script = (
        "import sys; sys.modules['h11'] = None\nfrom dyninformer.cli.main import app; app(['demo'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "error: the demo has a server of its own, which needs h11: "
        "pip install 'dyninformer[cli,testing]'\n"
    )


def test_the_manifests_in_the_package_are_the_examples() -> None:
    """So that it is the same from an installed package."""
    packaged = Path(demo.__file__).with_name("manifests")
    names = sorted(path.name for path in EXAMPLES.iterdir())
    assert sorted(path.name for path in packaged.iterdir()) == names
    for name in names:
        assert (packaged / name).read_bytes() == (EXAMPLES / name).read_bytes()


def texts(picture: Path) -> str:
    """All text in a picture, which must be SVG."""
    root = ElementTree.parse(picture).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return " ".join(root.itertext()).replace("\xa0", " ")


@pytest.mark.parametrize("name", PICTURES)
def test_the_readme_has_pictures_that_can_be_shown(name: str) -> None:
    """They are embedded, well formed, and load nothing."""
    picture = IMAGES / f"{name}.svg"
    assert f"docs/images/{name}.svg" in (ROOT / "README.md").read_text("utf-8")
    assert "MODIFIED" in texts(picture)
    assert "url(http" not in picture.read_text("utf-8")


def test_the_pictures_can_be_recorded_anew(tmp_path: Path) -> None:
    """By the script beside them, from real runs."""
    subprocess.run(
        [sys.executable, IMAGES / "record.py", tmp_path, "--seconds", "2"], check=True, timeout=100
    )
    assert "+ .spec.dnsNames[1]" in texts(tmp_path / "watch-diff.svg")
    assert "INDEX BY .spec.issuerRef.name" in texts(tmp_path / "demo.svg")
