"""Completion as each shell does it, with the script that --show-completion prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

Complete: TypeAlias = Callable[[str], list[str]]

BASH = r"""
eval "$(_DYNINFORMER_COMPLETE=source_bash dyninformer)"
# As readline does it: words are cut at blanks, and at = and :.
COMP_WORDS=()
while IFS= read -r word; do COMP_WORDS+=("$word"); done <<< "$WORDS"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_dyninformer_completion dyninformer
printf '%s\n' "${COMPREPLY[@]}"
"""
FISH = "_DYNINFORMER_COMPLETE=source_fish dyninformer | source; complete -C $LINE"
# compadd is what a completion calls in the end; outside of the line editor it cannot be called.
ZSH = r"""
compdef() { :; }
compadd() { shift; print -rl -- "$@"; }
_files() { :; }
eval "$(_DYNINFORMER_COMPLETE=source_zsh dyninformer)"
words=("${(@z)LINE}")
[[ $LINE == *' ' ]] && words+=("")
CURRENT=${#words}
_dyninformer_completion
"""


def cut_as_readline_does(line: str) -> str:
    """The words, one a line: a run of = or : is a word of its own."""
    words: list[str] = []
    for word in line.split(" "):
        piece, kind = "", ""
        for character in word:
            breaks = "cut" if character in "=:" else "text"
            if piece and breaks != kind:
                words.append(piece)
                piece = ""
            piece, kind = piece + character, breaks
        words.append(piece)
    return "\n".join(words)


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request: pytest.FixtureRequest, kubeconfig: Path, tmp_path: Path) -> Complete:
    """What the shell offers behind a line."""
    kind: str = request.param
    found = shutil.which(kind)
    if found is None:
        pytest.skip(f"there is no {kind} on this machine")
    command = tmp_path / "dyninformer"
    body = "import sys; sys.argv[0] = 'dyninformer'\nfrom dyninformer.cli.main import main\nmain()"
    command.write_text(f"#!{sys.executable}\n{body}\n", "utf-8")
    command.chmod(0o755)
    script = {"bash": BASH, "zsh": ZSH, "fish": FISH}[kind]

    def offered(line: str) -> list[str]:
        done = subprocess.run(
            [found, *(["-f"] if kind == "zsh" else []), "-c", script],
            env={
                **os.environ,
                "PATH": f"{tmp_path}:{os.environ['PATH']}",
                "KUBECONFIG": str(kubeconfig),
                "HOME": str(tmp_path),
                "LINE": line,
                "WORDS": cut_as_readline_does(line),
            },
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert done.stderr == ""
        whole = line.rpartition(" ")[2]
        if kind == "bash":  # what stands before a cut stays on the line
            kept = whole[: max(whole.rfind("="), whole.rfind(":")) + 1]
            return [kept + each for each in done.stdout.splitlines() if each]
        return [each.partition("\t")[0] for each in done.stdout.splitlines() if each]

    return offered


@pytest.mark.parametrize(
    ("line", "candidates"),
    [
        ("dyninformer cou", ["count"]),
        ("dyninformer get ipam", ["ipamblocks"]),
        ("dyninformer get -n prod cert/s", ["cert/shop"]),
        ("dyninformer get cert -n pr", ["prod"]),
        ("dyninformer --context dyn", ["dyninformer"]),
        ("dyninformer -n prod get cert ", ["mail", "shop"]),
        ("dyninformer get cert -o ya", ["yaml"]),
        ("dyninformer get cert -o cu", ["custom-columns=NAME:.metadata.name"]),
        ("dyninformer get cert --output=ya", ["--output=yaml"]),
        ("dyninformer wait cert/shop -n prod --for condition=R", ["condition=Ready"]),
        ("dyninformer wait cert/shop -n prod --for=condition=R", ["--for=condition=Ready"]),
        ("dyninformer wait cert shop -n prod --for del", ["delete"]),
    ],
)
def test_a_shell_offers_what_may_follow(shell: Complete, line: str, candidates: list[str]) -> None:
    """Commands, resources, names, namespaces, contexts, forms and conditions."""
    assert sorted(shell(line)) == candidates
