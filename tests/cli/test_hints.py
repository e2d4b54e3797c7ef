"""What the command advises instead of a command or an option that it does not have."""

from __future__ import annotations

import re

import pytest
from typer.testing import Result

from dyninformer.cli.hints import KUBECTL
from dyninformer.cli.main import COMMANDS
from tests.cli.conftest import Run


def said(result: Result) -> str:
    """Return the message inside the frame, on one line."""
    assert (result.exit_code, result.stdout) == (2, "")
    return " ".join(re.findall(r"[^\s│╭╮╰╯─]+", result.stderr.partition("Error")[2]))


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("describe cert/shop", "dyninformer get TYPE/NAME -o yaml"),
        ("explain cert", "kubectl explain"),
        ("api-resources", "dyninformer resources"),
        ("api-versions", "dyninformer resources"),
        ("events", "dyninformer watch events"),
        ("auth can-i list cert", "dyninformer doctor"),
        ("version", "dyninformer --version"),
        ("completion bash", "dyninformer --install-completion"),
        ("help get", "dyninformer --help"),
        ("list cert", "dyninformer get"),
        ("diff -f x.yaml", "dyninformer watch RESOURCE --diff"),
        ("logs shop", "kubectl logs"),
        ("apply -f x.yaml", "kubectl apply"),
        ("-n prod delete cert shop", "kubectl delete"),
    ],
)
def test_a_command_of_kubectl_says_what_to_use_instead(run: Run, words: str, hint: str) -> None:
    """The hint is a command that can be typed."""
    wanted = next(word for word in words.split() if word in KUBECTL)
    message = said(run(*words.split()))
    assert message.startswith(f"No such command '{wanted}'. ")
    assert hint in message


def test_a_hint_names_commands_that_exist() -> None:
    """A command that is renamed is renamed in the hints, too."""
    named = {each for hint in KUBECTL.values() for each in re.findall(r"dyninformer (\w+)", hint)}
    assert named <= set(COMMANDS)
    assert not set(COMMANDS) & set(KUBECTL)


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("gt cert", "No such command 'gt'. Did you mean get?"),
        ("wacht cert", "No such command 'wacht'. Did you mean watch?"),
        ("frobnicate", "No such command 'frobnicate'."),
        ("get cert --selecter a=b", "No such option: --selecter. Did you mean --selector?"),
        ("get cert --sort .spec.x", "No such option: --sort. Did you mean --sort-by?"),
        ("get cert --tokn x", "No such option: --tokn. Did you mean --token?"),
        ("--namspace prod get cert", "No such option: --namspace. Did you mean --namespace?"),
        ("get --raw /healthz", "No such option: --raw"),
        ("get cert --filename x.yaml", "No such option: --filename"),
        ("get cert -R", "No such option: -R"),
        ("--vmodule x=1 get cert", "No such option: --vmodule"),
    ],
)
def test_only_what_is_spelled_alike_is_suggested(run: Run, words: str, advice: str) -> None:
    """An option that has nothing to do with the one that was given is not suggested."""
    assert said(run(*words.split())) == advice
