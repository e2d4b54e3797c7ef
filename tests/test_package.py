"""What ``import dyninformer`` gives, and what it costs."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

import dyninformer
from dyninformer import testing
from tests.documents import ROOT
from tests.public_names import (
    NOT_FOR_IMPORT,
    named,
    on_the_reference_page,
    public_names,
    reached_types,
)


@pytest.mark.parametrize("package", [dyninformer, testing])
def test_every_public_name_is_there(package: object) -> None:
    """Each name of __all__ can be had, and dir() shows it."""
    for name in package.__all__:  # type: ignore[attr-defined]
        assert getattr(package, name) is not None
        assert name in dir(package)


@pytest.mark.parametrize("package", [dyninformer, testing])
def test_a_name_that_is_not_there_is_an_attribute_error(package: object) -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        package.nope  # type: ignore[attr-defined]  # noqa: B018


def test_testing_without_its_extra_says_what_to_install() -> None:
    """``pip install dyninformer`` alone brings the package along, and not what it is made with."""
    script = "import sys; sys.modules['h11'] = None; from dyninformer.testing import ApiServer"
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: dyninformer.testing needs h11: pip install 'dyninformer[testing]'"
    )


HEAVY = ("kubernetes", "rich", "pandas", "jsonpath_ng", "urllib3", "yaml", "zstandard")


def imported_by(statement: str) -> set[str]:
    """The heavy packages that a fresh interpreter has loaded after a statement."""
    report = f"{statement}; import sys; print(*[m for m in {HEAVY} if m in sys.modules])"
    ran = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True, timeout=60
    )
    return set(ran.stdout.split())


def test_importing_the_package_is_light() -> None:
    """It loads nothing that only some use."""
    assert imported_by("import dyninformer") == set()


def test_the_public_names_import_no_client_and_no_display() -> None:
    """Every name can be had without the official client, rich, pandas or jsonpath-ng."""
    found = imported_by("from dyninformer import *")
    assert found & {"kubernetes", "rich", "pandas", "jsonpath_ng", "yaml"} == set()


def test_the_version_has_one_source() -> None:
    """The package, the installed distribution, the command and the User-Agent say the same."""
    assert version("dyninformer") == dyninformer.__version__
    command = [str(Path(sys.executable).parent / "dyninformer"), "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert said == f"dyninformer {dyninformer.__version__}\n"
    with (
        testing.ApiServer() as server,
        dyninformer.open_informer("v1/pods", kubeconfig=server.kubeconfig()),
    ):
        agents = {each.user_agent for each in server.requests}
    assert agents == {f"dyninformer/{dyninformer.__version__}"}


@pytest.mark.parametrize("name", [*public_names()])
def test_a_public_name_says_what_it_is_and_shows_it(name: str) -> None:
    """It has a docstring with an example, which runs as a doctest; faults share their package's."""
    thing = named(name)
    if isinstance(thing, dict):
        return  # a table of names, which has no docstring of its own
    described = thing if inspect.isclass(thing) or inspect.isfunction(thing) else type(thing)
    assert described.__doc__
    assert name.startswith("dyninformer.testing.faults.") or ">>> " in described.__doc__


def test_the_reference_page_has_every_public_name_and_no_other() -> None:
    """What can be imported can be looked up."""
    assert {id(named(name)) for name in on_the_reference_page()} == {
        id(named(name)) for name in public_names()
    }


def test_what_public_names_take_and_return_is_public() -> None:
    """A type that a user meets can be imported, or its docstring says that it is not for that."""
    public = {id(named(name)) for name in public_names()}
    hidden = {
        f"{found.__module__}.{found.__qualname__}": sorted(where)
        for found, where in reached_types().items()
        if id(found) not in public and NOT_FOR_IMPORT not in (found.__doc__ or "")
    }
    assert hidden == {}


def test_what_a_submission_must_pass_is_a_job_of_ci() -> None:
    """Each command of .ci/run is in the matrix of ci.yml: the newest pre-releases, too."""
    root = Path(__file__).parents[1]
    commands = re.findall(r"^make (\S+)", (root / ".ci/run").read_text(), re.MULTILINE)
    jobs = yaml.safe_load((root / ".github/workflows/ci.yml").read_text())["jobs"]
    targets = {each["target"] for each in jobs["steps"]["strategy"]["matrix"]["include"]}
    assert "test-prereleases" in commands
    assert set(commands) <= targets


def test_what_the_commands_run_is_there() -> None:
    """A test that is renamed or merged is renamed in the Makefile, too."""
    named = set(re.findall(r"\btests/[\w./]+", (ROOT / "Makefile").read_text(encoding="utf-8")))
    assert len(named) > 5
    assert [place for place in sorted(named) if not (ROOT / place).exists()] == []


def test_the_demo_installs_only_what_it_needs(tmp_path: Path) -> None:
    """Two extras, in an environment apart from the large one for development."""
    would_run = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", "demo", f"DEMO={tmp_path}/env"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert re.findall(r"--editable '(.*)'", would_run) == [".[cli,testing]"]
    assert f"{tmp_path}/env/bin/dyninformer demo" in would_run


def test_no_environment_of_a_clone_is_in_git() -> None:
    """Git ignores each virtual environment that the Makefile creates, and clean removes it."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    created = dict(re.findall(r"^(\w+) [?:]= (\.venv\S*)$", makefile, re.MULTILINE))
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    removed = re.search(r"^clean:.*\n\trm -rf (.*)$", makefile, re.MULTILINE)
    assert removed
    assert "DEMO" in created
    for name, folder in created.items():
        assert f"{folder}/" in ignored
        assert f"$({name})" in removed[1]
