"""Open explore.ipynb in JupyterLab, with a busy cluster behind it that this program makes.

    python examples/notebook.py [--save] [-- OPTIONS OF JUPYTERLAB]

Certificates are issued, fail and are renewed, IP blocks give out addresses and take them back, as
in ``dyninformer demo``. ``--save`` runs the notebook instead, and keeps what it shows in it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from dyninformer.cli.demo.cluster import Story
from dyninformer.testing import ApiServer
from dyninformer.types import Object

HERE = Path(__file__).parent
NOTEBOOK = HERE / "explore.ipynb"
OBJECTS = 60
SECONDS = 0.4  # between two things that happen
HOSTS = {"worker-1": "m5.large", "worker-2": "m5.large", "worker-3": "c5.xlarge"}


@contextmanager
def busy_cluster() -> Generator[Mapping[str, str]]:
    """A cluster in which something happens all the time; how a program finds it."""
    with ApiServer() as server, tempfile.TemporaryDirectory() as folder:
        server.install(HERE / "crd")
        story = Story(server, OBJECTS)
        story.begin()
        for obj in workload():
            add(server, obj)
        over = threading.Event()
        thread = threading.Thread(target=play, args=(story, over), name="what happens", daemon=True)
        thread.start()
        try:
            yield {**os.environ, "KUBECONFIG": str(server.kubeconfig(Path(folder) / "kubeconfig"))}
        finally:
            over.set()
            thread.join()


def play(story: Story, over: threading.Event) -> None:
    """What happens every day, again and again; of the story what nobody has to be told of."""
    while not over.is_set():
        for act in story.acts():
            if not act.text:
                act.do()
                if over.wait(SECONDS):
                    return


def workload() -> Iterator[Object]:
    """Nodes, and a deployment with its replica set and its pods."""
    for host, machine in HOSTS.items():
        labels = {"node.kubernetes.io/instance-type": machine}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": host, "labels": labels}}
    labels = {"app": "shop"}
    template: Object = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "shop", "image": "example.com/shop:1"}]},
    }
    spec = {"replicas": 4, "selector": {"matchLabels": labels}, "template": template}
    yield owned("apps/v1", "Deployment", "shop", spec, labels=labels)
    yield owned("apps/v1", "ReplicaSet", "shop-7d9f", spec, labels=labels, owner="Deployment/shop")
    for number, host in enumerate([*HOSTS, "worker-1"]):
        pod = {**template["spec"], "nodeName": host}
        yield owned(
            "v1", "Pod", f"shop-7d9f-{number}", pod, labels=labels, owner="ReplicaSet/shop-7d9f"
        )


def owned(
    version: str, kind: str, name: str, spec: object, *, labels: Object, owner: str = ""
) -> Object:
    """An object of the namespace prod, and by what it is owned: ``Kind/name``."""
    metadata: Object = {
        "name": name,
        "namespace": "prod",
        "labels": labels,
        "uid": f"{kind}-{name}",
    }
    if owner:
        owner_kind, _, owner_name = owner.partition("/")
        metadata["ownerReferences"] = [
            {
                "apiVersion": "apps/v1",
                "kind": owner_kind,
                "name": owner_name,
                "uid": f"{owner_kind}-{owner_name}",
                "controller": True,
            }
        ]
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def add(server: ApiServer, obj: Object) -> None:
    """Put an object there with the uid that its owner's references have."""
    server.load(obj)


def run(notebook: Path, environment: Mapping[str, str]) -> Any:
    """Run every cell; what nbformat reads of the notebook, with all that was shown."""
    nbformat, nbclient = typeless("nbformat"), typeless("nbclient")
    found = nbformat.read(notebook, as_version=4)
    client = nbclient.NotebookClient(found, timeout=120, kernel_name="python3")
    client.execute(env=dict(environment))
    return found


def typeless(name: str) -> Any:
    """A module that says nothing of its types, and that only ``--save`` needs."""
    return import_module(name)


def save(environment: Mapping[str, str]) -> None:
    """Run the notebook, and keep what it shows."""
    found = run(NOTEBOOK, environment)
    for cell in found.cells:
        cell.metadata.pop("execution", None)  # when each cell ran
    found.metadata.pop("widgets", None)  # nothing is left of them without their kernel
    typeless("nbformat").write(found, NOTEBOOK)


def main() -> int:
    """Begin."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--save", action="store_true", help="run it, and keep what it shows")
    parser.add_argument("options", nargs="*", help="options of JupyterLab, behind --")
    given = parser.parse_args()
    with busy_cluster() as environment:
        if given.save:
            save(environment)
            return 0
        print(
            f"KUBECONFIG={environment['KUBECONFIG']} is the cluster's, for kubectl, too.",
            flush=True,
        )
        # JupyterLab refuses root, who is the only user of many containers.
        root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        command = [sys.executable, "-m", "jupyterlab", *root, *given.options, str(NOTEBOOK)]
        try:
            return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603
        except KeyboardInterrupt:
            return 0  # JupyterLab has had it, too, and has asked


if __name__ == "__main__":
    sys.exit(main())
