"""etcd's own door, for what no API server offers: revisions, compaction, a clean slate."""

from __future__ import annotations

import base64
import json
from typing import Any

import urllib3

from dyninformer.errors import DynInformerError

_PREFIX = b"/registry/"
_COMPACT_KEY = b"compact_rev_key"


class EtcdError(DynInformerError, ConnectionError):
    """etcd refused what was asked, or did not answer."""


class Etcd:
    """The key-value store behind a control plane, through its JSON gateway."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool = urllib3.PoolManager(retries=False, timeout=10)

    def revision(self) -> int:
        """The revision of the newest write, which is the newest resourceVersion."""
        answer = self._ask("/v3/kv/range", {"key": _text(_PREFIX), "limit": 1, "keys_only": True})
        return int(answer["header"]["revision"])

    def keys(self) -> set[bytes]:
        """The key of every object of the cluster."""
        question = {"key": _text(_PREFIX), "range_end": _text(_after(_PREFIX)), "keys_only": True}
        found = self._ask("/v3/kv/range", question).get("kvs", [])
        return {base64.b64decode(entry["key"]) for entry in found}

    def delete(self, key: bytes) -> None:
        """Remove one object, past finalizers and everything else that would object."""
        self._ask("/v3/kv/deleterange", {"key": _text(key)})

    def compact(self, revision: int) -> None:
        """Forget every state before ``revision``, and tell API servers so.

        They read the revision of the last compaction from a key of their own; it
        is written first, as they do it themselves.
        """
        self._ask("/v3/kv/put", {"key": _text(_COMPACT_KEY), "value": _text(b"%d" % revision)})
        self._ask("/v3/kv/compaction", {"revision": revision, "physical": True})

    def healthy(self) -> bool:
        """Whether etcd takes writes; False, not an error, while it is down."""
        try:
            return self._pool.request("GET", f"{self._url}/health", timeout=1).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def close(self) -> None:
        """Let the connections go."""
        self._pool.clear()

    def _ask(self, path: str, question: dict[str, object]) -> dict[str, Any]:
        try:
            answer = self._pool.request("POST", self._url + path, json=question)
        except urllib3.exceptions.HTTPError as error:
            raise EtcdError(f"etcd at {self._url} did not answer {path}: {error}") from error
        if answer.status != 200:
            text = answer.data.decode(errors="replace")[:300]
            raise EtcdError(f"etcd refused {path}: HTTP {answer.status}: {text}")
        found: dict[str, Any] = json.loads(answer.data)
        return found


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _after(prefix: bytes) -> bytes:
    return prefix[:-1] + bytes([prefix[-1] + 1])
