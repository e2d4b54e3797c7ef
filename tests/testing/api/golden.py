"""Replays exchanges that were recorded on a real kube-apiserver, and compares the answers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from dyninformer.testing.api.router import Api
from dyninformer.testing.cluster.log import GroupResource, Key
from dyninformer.testing.messages import Request, Response
from dyninformer.types import Object

_GOLDEN = Path(__file__).parents[2] / "data" / "golden"
_OF_THE_CONNECTION = {"Content-Length", "Transfer-Encoding", "Audit-Id", "Date"}
_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_REVISION = re.compile(r'resourceVersion"?: ?"(\d+)"')
_CONTINUE = re.compile(r'continue"?: ?"?([\w-]{20,})')
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_SUFFIX = re.compile(r'"gen-[a-z0-9]{5}"')
_AGE = re.compile(r'"(?:\d+[dhms]){1,2}"')


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded exchange."""

    name: str
    request: Object
    response: Object

    @property
    def body(self) -> str:
        """The body of the answer, as text."""
        raw = self.response.get("raw")
        if raw is not None:
            return str(raw)
        body = self.response["body"]
        return body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))


@cache
def recordings(topic: str) -> dict[str, Recording]:
    """The exchanges of a topic, by name, in the order they were recorded."""
    text = (_GOLDEN / f"{topic}.json").read_text(encoding="utf-8")
    found = json.loads(text)["recordings"]
    return {
        each["name"]: Recording(each["name"], each["request"], each["response"]) for each in found
    }


class Replay:
    """One API, and what the recorded uids and versions are called on it."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._names: dict[str, str] = {}

    def ask(self, recording: Recording) -> Response:
        """Send the recorded request."""
        asked = recording.request
        path, _, query = self._here(asked["path"]).partition("?")
        body = asked.get("body")
        if body is None:
            text = ""
        elif isinstance(body, str):
            text = body
        else:
            text = json.dumps(body)
        request = Request(
            asked["method"],
            unquote(path),
            tuple(parse_qsl(query, keep_blank_values=True)),
            {name.lower(): value for name, value in asked["headers"].items()},
            self._here(text).encode(),
        )
        answer = self._api.handle(request)
        assert isinstance(answer, Response)
        return answer

    def check(self, recording: Recording) -> None:
        """Send the recorded request; status, headers and body are those recorded.

        uids, versions and continue tokens may be others, but the same ones for the same
        object throughout a replay. Times and ages are not compared.
        """
        answer = self.ask(recording)
        text = body_text(answer)
        self._learn(recording.body, text)
        ours, theirs = _timeless(text), _timeless(self._here(recording.body))
        if "raw" not in recording.response and theirs.startswith("{"):
            ours, theirs = json.loads(ours), json.loads(theirs)
        assert (answer.status, ours) == (recording.response["status"], theirs), recording.name
        headers = {
            name: self._here(value)
            for name, value in recording.response["headers"].items()
            if name not in _OF_THE_CONNECTION
        }
        assert dict(answer.headers) == headers, recording.name

    def _learn(self, recorded: str, ours: str) -> None:
        for pattern in (_UID, _REVISION, _CONTINUE):
            for theirs, here in zip(pattern.findall(recorded), pattern.findall(ours), strict=False):
                self._names.setdefault(theirs, here)

    def _here(self, text: str) -> str:
        """Text of the recording with the names of this replay."""
        for theirs, here in self._names.items():
            if len(theirs) > 4:
                text = re.sub(rf"(?<!\w){re.escape(theirs)}(?!\w)", here, text)
        return text


def body_text(answer: Response) -> str:
    """The whole body."""
    body = answer.body
    return (body if isinstance(body, bytes) else b"".join(body)).decode()


def custom_resource(
    group: str,
    plural: str,
    kind: str,
    schema: Object | None = None,
    *,
    versions: tuple[str, ...] = ("v1",),
    status: bool = True,
    scale: bool = False,
) -> Object:
    """A CRD of a namespaced resource; the first version is stored."""
    open_ = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = schema or {"type": "object", "properties": {"spec": open_, "status": open_}}
    subresources: Object = {"status": {}} if status else {}
    if scale:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    served = [
        {
            "name": name,
            "served": True,
            "storage": name == versions[0],
            "schema": {"openAPIV3Schema": schema},
            "subresources": subresources,
        }
        for name in versions
    ]
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": served},
    }


def place(cluster: Any, group: str, plural: str, obj: Object) -> None:
    """Put an object into the log as it is, as if it had been written long ago."""
    metadata = obj["metadata"]
    key = Key(metadata.get("namespace", ""), metadata["name"])
    cluster.log.append(GroupResource(group, plural), key, obj)


def _timeless(text: str) -> str:
    text = _TIME.sub("<time>", text)
    return _AGE.sub('"<age>"', _SUFFIX.sub('"gen-xxxxx"', text))
