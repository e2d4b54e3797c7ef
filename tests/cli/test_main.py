"""The command as a whole: its help, its list of subcommands, and what that costs."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from dyninformer.cli import errors
from dyninformer.cli.main import COMMANDS
from tests.cli.conftest import Run
from tests.documents import ROOT

EXAMPLE = re.compile(r"^\s*\$ dyninformer (.+)$", re.MULTILINE)
ENDING = (
    "get",
    "watch",
    "wait",
    "count",
    "resources",
    "doctor",
)  # whose examples end by themselves
THERE = [name for name, listed in COMMANDS.items() if find_spec(f"dyninformer.cli.{listed.module}")]


def docstring(name: str) -> str:
    """What --help of a subcommand says."""
    return str(import_module(f"dyninformer.cli.{COMMANDS[name].module}").command.__doc__)


@pytest.mark.parametrize("name", THERE)
def test_the_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    """The list is written by hand, so that it can be shown without importing them."""
    assert docstring(name).splitlines()[0] == COMMANDS[name].help


@pytest.mark.parametrize("name", THERE)
def test_each_command_has_examples(name: str) -> None:
    """Each begins with the command itself."""
    found = EXAMPLE.findall(docstring(name))
    assert found
    assert all(example.startswith(name) for example in found)


@pytest.mark.parametrize(
    "example", [text for name in ENDING for text in EXAMPLE.findall(docstring(name))]
)
def test_an_example_of_the_help_does_what_it_shows(run: Run, example: str) -> None:
    """Each finds something on a server that has the examples."""
    result = run(*shlex.split(example), *(["--once"] if example.startswith("count ") else []))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.strip()


@pytest.mark.parametrize("args", [["--help"], ["--version"]])
def test_help_imports_neither_the_client_nor_the_library(args: list[str]) -> None:
    """That would be most of its time."""
    script = (
        "import sys; from dyninformer.cli.main import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *args], capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    heavy = {"kubernetes", "msgspec", "zstandard", "jsonpath_ng", "yaml", "urllib3"}
    assert not heavy & loaded
    assert {name for name in loaded if name.startswith("dyninformer")} == {
        "dyninformer",
        "dyninformer.errors",
        "dyninformer.first_use",
        "dyninformer.cli",
        "dyninformer.cli.main",
        "dyninformer.cli.completion",
        "dyninformer.cli.errors",
        "dyninformer.cli.global_flags",
        "dyninformer.cli.plain_values",
        "dyninformer.display",
        "dyninformer.display.text",
        "dyninformer.types",
    }


def into_closed_pipe(
    *words: str, environment: dict[str, str], stderr_too: bool = False
) -> tuple[int, str]:
    """Run a script whose reader has left; return its exit code, and what stderr has if read."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-c", *words],
            check=False,
            stdout=writer,
            stderr=writer if stderr_too else subprocess.PIPE,
            text=True,
            timeout=60,
            env={**os.environ, **environment},
        )
    finally:
        os.close(writer)
    return done.returncode, done.stderr or ""


COMMAND = "from dyninformer.cli.start import main; main()"


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "--version",
        "--show-completion bash",
        "get --help",
        "resources",
        "get cert -A",
        "get cert -A -o yaml",
        "watch cert -A --timeout 1",
        "wait cert/shop -n prod --for create",
        "count cert -A",
        "tree cert/shop -n prod",
        "doctor cert -n prod",
        "demo --seconds 1",
    ],
)
def test_a_reader_that_closes_the_pipe_is_no_failure(kubeconfig: Path, words: str) -> None:
    """``| head -1`` ends the command silently."""
    environment = {
        "KUBECONFIG": str(kubeconfig),
        # The shell is named, and not looked for among the processes above this one.
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    assert into_closed_pipe(COMMAND, *words.split(), environment=environment) == (0, "")


@pytest.mark.parametrize(
    ("words", "code"), [("--help", 0), ("get", 2), ("get nothing", 2), ("nothing", 2)]
)
def test_a_failure_keeps_its_exit_code_when_its_message_has_no_reader(
    kubeconfig: Path, words: str, code: int
) -> None:
    """``2>&1 | head`` does not turn a failure into a success."""
    environment = {"KUBECONFIG": str(kubeconfig)}
    command = (COMMAND, *words.split())
    assert into_closed_pipe(*command, environment=environment, stderr_too=True) == (code, "")


@pytest.mark.parametrize(
    ("script", "environment"),
    [
        (
            COMMAND,
            {"_DYNINFORMER_COMPLETE": "complete_bash", "COMP_WORDS": "d\nw", "COMP_CWORD": "1"},
        ),
        ("from dyninformer.cli.completion import main; main()", {}),
    ],
    ids=["shell", "kubectl"],
)
def test_completion_without_a_reader_says_nothing(script: str, environment: dict[str, str]) -> None:
    """A shell that no longer wants the candidates sees no traceback."""
    assert into_closed_pipe(script, "wa", environment=environment) == (0, "")


@pytest.mark.parametrize(
    "args",
    [
        ["-n", "prod", "get", "cert"],
        ["-nprod", "get", "cert"],
        ["--namespace=prod", "--request-timeout", "20", "get", "cert"],
    ],
    ids=str,
)
def test_options_of_the_cluster_may_stand_before_the_command(run: Run, args: list[str]) -> None:
    """As in kubectl, whose users have them in aliases."""
    result = run(*args, "-o", "name")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == run("get", "cert", "-n", "prod", "-o", "name").stdout != ""


@pytest.mark.parametrize(
    "args", [["-n", "prod"], ["--namespace=prod"], ["--request-timeout", "20"]], ids=str
)
def test_the_list_of_resources_takes_them_too(run: Run, args: list[str]) -> None:
    """The namespace means nothing there, as in kubectl api-resources."""
    wanted = run("resources", "certificates").stdout
    for words in ([*args, "resources", "certificates"], ["resources", "certificates", *args]):
        result = run(*words)
        assert (result.exit_code, result.stderr, result.stdout) == (0, "", wanted)


@pytest.mark.parametrize("command", ["demo", "serve", "replay"])
def test_what_has_its_own_api_server_takes_no_cluster(run: Run, command: str) -> None:
    """It says so, and begins nothing."""
    result = run("--context=eu", command, "file")
    assert result.exit_code == 2
    assert result.stderr == (
        f"error: {command} has an API server of its own: leave --context out\n"
    )


@pytest.mark.parametrize("module", ["typer", "dyninformer.cli.main", "dyninformer.cli.get"])
def test_an_interrupt_says_nothing_from_the_first_import_on(module: str) -> None:
    """The imports are most of what a short command takes."""
    script = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.argv[1:] = ['get', 'cert']\n"
        "from dyninformer.cli.start import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_without_its_extra_the_command_says_what_to_install() -> None:
    """``pip install dyninformer`` alone brings the command along, and not what it is made with."""
    script = (
        "import sys\n"
        "sys.modules['typer'] = None\n"
        "sys.argv[1:] = ['--version']\n"
        "from dyninformer.cli.start import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: the command needs typer: pip install 'dyninformer[cli]'\n"


def test_the_package_runs_as_the_command() -> None:
    """``python -m`` finds it where the folder of commands is not in PATH."""
    script = [sys.executable, "-m", "dyninformer", "--version"]
    done = subprocess.run(script, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"dyninformer \S+\n", done.stdout)


def test_messages_advise_what_a_shell_has(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """No parameter of Python is named; what is translated is still what the library says."""
    monkeypatch.setenv("KUBECONFIG", "/nonexistent/config")
    said = run("get", "cert").stderr
    assert "give --kubeconfig" in said
    assert "kubeconfig=" not in said
    sources = "\n".join(messages())
    assert [words for words in errors._IN_A_SHELL if words not in sources] == []


@pytest.mark.parametrize(("text", "code"), [("20s", 0), ("0.5m", 0), ("soon", 2)])
def test_a_request_timeout_is_a_duration(run: Run, text: str, code: int) -> None:
    """As kubectl takes it, or in seconds."""
    assert run("get", "cert", "-A", "-o", "name", "--request-timeout", text).exit_code == code


def helped(name: str) -> str:
    """The help of a command on a terminal of 80 columns; "" is dyninformer's own."""
    done = subprocess.run(
        [sys.executable, "-m", "dyninformer.cli.main", *([name] if name else []), "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"},
    )
    return done.stdout


@pytest.mark.parametrize("name", ["", *THERE])
def test_help_fits_80_columns_and_names_no_type_of_python(name: str) -> None:
    """An example that is cut in two cannot be copied; a flag has no value."""
    shown = helped(name)
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    assert re.findall(r"<\w+(?: range)?>|<list\[.*", shown) == []
    for example in re.findall(r"^ *(\$ .+)$", docstring(name), re.MULTILINE) if name else ():
        assert f"  {example}" in shown


EXPECTED_IN_A_PROGRAM = (
    "make a new one",  # of a factory: the command's own goes with the command
    "running factory for a new one",
    "the factory was shut down",
    "pass a client, or kubeconfig= and context=, not both",
    "call factory.remove(",
    "pass namespace=, or what the write",  # of wait_for_version
    "factory.sync() waits for it",  # of reads before the first sync
    "Ask a running factory for the resource again",
    "pass it to for_resource",  # of GroupVersionResource.parse
    "only label_selector, field_selector and limit",  # of a tweak
    "page_size is ",
    "wait_for(..., name=",  # the command knows the namespace
    "as the event loop that called it has ended",
    "a GroupVersionResource",  # of arguments of the wrong type
    "a mapping from GroupVersionResources",
    "GroupVersionResource(x), or a name",
)
"""What the command gives no occasion for."""
UNDER_THE_COMMAND = {
    *("watching", "transport", "discovery", "jsonpath", "delivery", "follow.py", "waiting.py"),
    *("options.py", "selectors.py", "resource.py", "factory.py", "informer.py"),
}
OF_PROGRAMS = re.compile(
    r"[Pp]ass [a-zA-Z_.]+(?:=|\b)|\w+=\.\.\.|for_resource|factory\b|GroupVersionResource|"
    r"function of the object|page_size|label_selector"
)


def messages() -> Iterator[str]:
    """Every text with more than a word of what the command goes through, docstrings left out."""
    for path in sorted((ROOT / "dyninformer").rglob("*.py")):
        if path.relative_to(ROOT / "dyninformer").parts[0] not in UNDER_THE_COMMAND:
            continue
        tree = ast.parse(path.read_text("utf-8"))
        texts = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = [each for each in node.values if isinstance(each, ast.Constant)]
                texts.update(map(id, parts))
                yield "".join(
                    str(each.value) if isinstance(each, ast.Constant) else "x"
                    for each in node.values
                )
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in texts else ""
            if isinstance(text, str) and " " in text and not text.startswith("dict["):
                yield text


def test_no_message_of_the_library_speaks_of_python_in_a_shell() -> None:
    """Each is put into the words of a shell, unless the command gives no occasion for it."""
    wrong = [
        text
        for text in messages()
        if OF_PROGRAMS.search(errors.in_a_shell(text))
        and not any(known in text for known in EXPECTED_IN_A_PROGRAM)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["replay", "nofile"], "nofile: No such file or directory"),
        (["serve", "nofile"], "nofile: No such file or directory"),
        (["record", "cert", "-o", "no/x", "--for", "0"], "no/x: No such file or directory"),
        (["wait", "cert", "--all", "--for", "xyz"], "'xyz' is nothing to wait for"),
    ],
    ids=str,
)
def test_a_file_that_is_not_there_is_named(run: Run, args: list[str], said: str) -> None:
    """And no number of an error is."""
    stderr = run(*args).stderr
    assert stderr.startswith(f"error: {said}")
    assert "Errno" not in stderr
    assert "function" not in stderr
