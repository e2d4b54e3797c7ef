"""Values of options, taken as they come."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from dyninformer.cli.plain_values import take_as_they_come


def test_a_get_imports_no_validators(kubeconfig: Path) -> None:
    """They take longer to import than the answer does."""
    script = (
        "import sys; from dyninformer.cli.main import app\n"
        "app(['get', 'cert', 'shop', '-n', 'prod', '-L', 'a', '--kubeconfig', sys.argv[1]],"
        " standalone_mode=False)\n"
        "print('pydantic' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(kubeconfig)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"


def parsed(*args: str, spared: bool) -> dict[str, Any]:
    """What a command gets, or why it is not called."""
    got: dict[str, Any] = {}
    app = typer.Typer(add_completion=False)

    @app.command()
    def command(
        words: Annotated[list[str], typer.Argument()],
        text: Annotated[str | None, typer.Option()] = None,
        many: Annotated[list[str] | None, typer.Option()] = None,
        number: Annotated[int, typer.Option()] = 7,
        doubled: Annotated[float, typer.Option(parser=lambda each: 2 * float(each))] = 1.5,
        *,
        flag: Annotated[bool, typer.Option("--flag")] = False,
        path: Annotated[Path, typer.Option()] = Path("x"),
    ) -> None:
        got.update(
            words=words, text=text, many=many, number=number, flag=flag, path=path, doubled=doubled
        )

    made = typer.main.get_command(app)
    if spared:
        take_as_they_come(made.params)
    try:
        made.main(list(args), standalone_mode=False)
    except Exception as refused:  # noqa: BLE001 - typer's own, compared by what they say
        got["refused"] = str(refused)
    return got


@pytest.mark.parametrize(
    "args",
    [
        ["a"],
        ["a", "b", "--text", "t", "--many", "1", "--many", "2", "--flag"],
        ["a", "--number", "8", "--path", "y"],
        ["a", "--number", "x"],
        ["--text", "t"],
        ["a", "--text", ""],
    ],
)
def test_a_command_gets_the_same_as_from_typer(args: list[str]) -> None:
    """Values, defaults and refusals."""
    assert parsed(*args, spared=True) == parsed(*args, spared=False)
