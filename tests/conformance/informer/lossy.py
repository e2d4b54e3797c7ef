"""A proxy that leaves out lines of watches, as a server whose watch cache has lost events."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

import urllib3

Wanted: TypeAlias = Callable[[str, str], bool]


class LossyProxy:
    """Passes requests on to one server; of watches what ``is_lost(type, name)`` is left out.

    It speaks plain HTTP with its clients, and shows the server their credentials, or, of clients
    that show none without TLS, the token that is given.
    """

    def __init__(self, url: str, ca: Any, is_lost: Wanted, token: str = "") -> None:
        pool = urllib3.PoolManager(maxsize=20, ca_certs=None if ca is None else str(ca))
        self.lost: list[tuple[str, str]] = []
        """What was left out: type and name."""
        lost = self.lost

        class Passing(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                headers = {
                    name: self.headers[name]
                    for name in ("Authorization", "Accept")
                    if self.headers[name]
                }
                if token:
                    headers.setdefault("Authorization", f"Bearer {token}")
                answer = pool.request(
                    "GET", url + self.path, headers=headers, preload_content=False
                )
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers["Content-Type"])
                self.end_headers()
                if "watch=true" not in self.path:
                    self.wfile.write(answer.read())
                    return
                try:
                    self._pass_lines(answer)
                except (OSError, urllib3.exceptions.HTTPError):
                    answer.close()

            def _pass_lines(self, answer: urllib3.BaseHTTPResponse) -> None:
                rest = b""
                for chunk in answer.stream(None):
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        event = json.loads(line)
                        found = event["type"], event["object"]["metadata"].get("name", "")
                        if is_lost(*found):
                            lost.append(found)
                            continue
                        self.wfile.write(line + b"\n")
                        self.wfile.flush()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Let go of it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
