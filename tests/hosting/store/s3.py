"""A real S3-compatible server (moto's) in a process of its own, behind a door that can be shut."""

from __future__ import annotations

import contextlib
import http.client
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
BUCKET = "trainings"

OWN_HEADERS = {"content-length", "transfer-encoding", "connection"}

_REFUSAL = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"


class Door:
    """Hands requests on to a server; ``mode`` says what it does instead.

    "open"; "shut": hangs up; "refuse": 403 to everything; "full": 507 to what writes.
    """

    def __init__(self, port: int) -> None:
        self.mode, self.n_asked = "open", dict[str, int]()
        door = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                door.n_asked[self.command] = door.n_asked.get(self.command, 0) + 1
                if door.mode == "shut":
                    self.close_connection = True
                elif door.mode == "refuse":
                    self.refuse(403, "AccessDenied")
                elif door.mode == "full" and self.command in {"PUT", "POST"}:
                    self.refuse(507, "QuotaExceeded")
                else:
                    self.hand_on(body)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer

            def refuse(self, status: int, code: str) -> None:
                content = _REFUSAL.format(code=code).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            def hand_on(self, body: bytes) -> None:
                with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as asked:
                    asked.request(self.command, self.path, body, dict(self.headers))
                    answer = asked.getresponse()
                    content = answer.read()
                    length = answer.getheader("Content-Length") or "0"
                    self.send_response_only(answer.status)
                    for name, value in answer.getheaders():
                        if name.lower() not in OWN_HEADERS:
                            self.send_header(name, value)
                    is_head = self.command == "HEAD"
                    self.send_header("Content-Length", length if is_head else str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def serving() -> Iterator[Door]:
    """Serve S3 through a door until the end; skip the test where there is no server for it."""
    for module in ("moto", "flask", "flask_cors", "s3fs"):
        pytest.importorskip(
            module, reason="needs pip install -r requirements-cluster.txt moto flask flask-cors"
        )
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = (re.search(r"127\.0\.0\.1:(\d+)", line) for line in process.stderr)
        port = next(int(found[1]) for found in said if found)
        threading.Thread(target=process.stderr.read, daemon=True).start()
        door = Door(port)
        try:
            yield door
        finally:
            door.close()
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()
