"""The fixtures and options that a stranger's tests get from the plugin."""

from __future__ import annotations

import subprocess
import sys

import pytest

CONFIG_MAP = """
    CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
"""
NEEDS_SERVER = """
    def test_it(kube_api):
        assert kube_api.list("namespaces")
"""


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inner runs see none of the settings of this one."""
    monkeypatch.delenv("DYNINFORMER_KUBE_API_REQUIRED", raising=False)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)


def _outcome(pytester: pytest.Pytester, *args: str) -> tuple[dict[str, int], str]:
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *args)
    return result.parseoutcomes(), result.stdout.str()


def test_every_test_gets_a_clean_server(pytester: pytest.Pytester) -> None:
    """What one test creates, the next does not find."""
    pytester.makepyfile(
        CONFIG_MAP
        + """
    def test_one(kube_api):
        kube_api.create(CONFIG_MAP)
        assert kube_api.get("configmaps/c")

    def test_two(kube_api):
        assert kube_api.list("configmaps", "default") == []
        kube_api.create(CONFIG_MAP)
    """
    )
    assert _outcome(pytester)[0] == {"passed": 2}


def test_the_session_server_keeps_its_state(pytester: pytest.Pytester) -> None:
    """kube_api_session is one server for all, and nobody empties it."""
    pytester.makepyfile(
        CONFIG_MAP
        + """
    def test_one(kube_api_session):
        kube_api_session.create(CONFIG_MAP)

    def test_two(kube_api_session):
        assert kube_api_session.get("configmaps/c")
    """
    )
    assert _outcome(pytester)[0] == {"passed": 2}


def test_the_client_is_connected_to_the_server(pytester: pytest.Pytester) -> None:
    """kube_client is the official DynamicClient, and sees what kube_api holds."""
    pytester.makepyfile(
        CONFIG_MAP
        + """
    def test_it(kube_api, kube_client):
        kube_api.create(CONFIG_MAP)
        config_maps = kube_client.resources.get(api_version="v1", kind="ConfigMap")
        assert config_maps.get("c", "default").metadata.name == "c"
    """
    )
    assert _outcome(pytester)[0] == {"passed": 1}


def test_the_embedded_server_needs_no_binaries(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without KUBEBUILDER_ASSETS the default works."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    pytester.makepyfile(NEEDS_SERVER)
    assert _outcome(pytester)[0] == {"passed": 1}


def test_without_a_real_server_tests_are_skipped_and_told_why(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--kube-api=real without KUBEBUILDER_ASSETS skips with a way out; other tests run."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    pytester.makepyfile(NEEDS_SERVER + "\n    def test_other(): pass\n")
    outcomes, said = _outcome(pytester, "--kube-api=real", "-rs")
    assert outcomes == {"passed": 1, "skipped": 1}
    assert "KUBEBUILDER_ASSETS is not set" in said
    assert "make kube" in said


@pytest.mark.parametrize("how", ["option", "variable"])
def test_a_required_real_server_that_is_missing_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """--kube-api-required, or its variable, turns the skip into an error."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    args = ["--kube-api=real"]
    if how == "option":
        args.append("--kube-api-required")
    else:
        monkeypatch.setenv("DYNINFORMER_KUBE_API_REQUIRED", "1")
    pytester.makepyfile(NEEDS_SERVER)
    outcomes, said = _outcome(pytester, *args)
    assert outcomes == {"errors": 1}
    assert "KUBEBUILDER_ASSETS is not set" in said


@pytest.mark.real
def test_the_same_tests_run_on_a_real_server(pytester: pytest.Pytester) -> None:
    """With --kube-api=real the fixtures are a control plane, emptied between tests."""
    pytester.makepyfile(
        CONFIG_MAP
        + """
    from dyninformer.testing import ControlPlane

    def test_one(kube_api):
        assert isinstance(kube_api, ControlPlane)
        kube_api.create(CONFIG_MAP)

    def test_two(kube_api, kube_client):
        assert kube_api.list("configmaps", "default") == []
    """
    )
    outcomes, said = _outcome(pytester, "--kube-api=real")
    assert outcomes == {"passed": 2}
    assert "kube-api: real, from " in said


@pytest.mark.real
def test_a_test_that_needs_the_embedded_server_is_skipped_on_a_real_one(
    pytester: pytest.Pytester,
) -> None:
    """Faults, users, the log of requests: in a test or in a fixture, the reason says which."""
    pytester.makepyfile(
        CONFIG_MAP
        + """
    import pytest
    from dyninformer.testing.faults import HttpStatus

    def test_faults(kube_api):
        kube_api.create(CONFIG_MAP)
        kube_api.faults.add(HttpStatus(503))
        assert False, "not reached"

    @pytest.fixture
    def token(kube_api):
        return kube_api.access.add_user("alice")

    def test_fixture(token):
        assert False, "not reached"

    def test_misspelt(kube_api):
        with pytest.raises(AttributeError, match="no attribute 'fault'"):
            kube_api.fault

    def test_other(kube_api):
        assert kube_api.list("configmaps", "default") == []
    """
    )
    outcomes, said = _outcome(pytester, "--kube-api=real", "-rs")
    assert outcomes == {"passed": 2, "skipped": 2}
    assert "a real API server has no 'faults': only the embedded one, ApiServer, does" in said
    assert "a real API server has no 'access'" in said


@pytest.mark.real
def test_a_test_that_stops_the_embedded_server_is_skipped_on_a_real_one(
    pytester: pytest.Pytester,
) -> None:
    """stop() and start() take no process there; with a process they are the real server's own."""
    pytester.makepyfile(
        """
    def test_stop(kube_api):
        kube_api.stop()
        assert False, "not reached"

    def test_start(kube_api):
        kube_api.start()
        assert False, "not reached"

    def test_process(kube_api):
        kube_api.stop("kube-apiserver", timeout=0)
        kube_api.start("kube-apiserver")
        assert kube_api.list("namespaces")
    """
    )
    outcomes, said = _outcome(pytester, "--kube-api=real", "-rs")
    assert outcomes == {"passed": 1, "skipped": 2}
    assert "a real API server has no 'stop()' without the name of a process" in said
    assert "a real API server has no 'start()'" in said


@pytest.mark.real
def test_every_xdist_worker_has_a_server_of_its_own(pytester: pytest.Pytester) -> None:
    """Two workers are two control planes, and neither sees the other's objects."""
    pytester.makepyfile(
        CONFIG_MAP
        + """
    import pathlib, time, pytest

    def meet(tmp_path_factory, name, url):
        # Each test waits for the other, so that they run on different workers.
        folder = tmp_path_factory.getbasetemp().parent
        (folder / name).write_text(url)
        other = folder / {"a": "b", "b": "a"}[name]
        deadline = time.monotonic() + 60
        while not (other.exists() and other.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return other.read_text()

    @pytest.mark.parametrize("name", ["a", "b"])
    def test_it(kube_api, tmp_path_factory, name):
        kube_api.create(CONFIG_MAP)
        assert meet(tmp_path_factory, name, kube_api.url) != kube_api.url
    """
    )
    assert _outcome(pytester, "--kube-api=real", "-n", "2")[0] == {"passed": 2}


def test_the_options_explain_themselves(pytester: pytest.Pytester) -> None:
    """--help names both options."""
    said = pytester.runpytest_subprocess("--help").stdout.str()
    assert "--kube-api={embedded,real}" in said
    assert "--kube-api-required" in said


def test_importing_the_plugin_imports_no_server() -> None:
    """A project that does not use the fixtures pays for none of what they need."""
    script = (
        "import sys, dyninformer.testing.pytest_plugin\n"
        "heavy = {'kubernetes', 'urllib3', 'h11', 'yaml', 'trustme', 'asyncio', 'ssl'}\n"
        "own = [name for name in sys.modules if name.startswith('dyninformer.testing.')]\n"
        "print(sorted(heavy & set(sys.modules)), own)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[] ['dyninformer.testing.pytest_plugin']"
