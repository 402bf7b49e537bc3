"""Watchers of a published run, without browsers: ``python -m benchmarks.crowd URL N SECONDS``.

Each has a connection of its own and asks as the page does (``pages/components/live.js``): first for
all that the page needs, then again and again for ``run.json`` with ``If-None-Match``, and for what
is new behind it with ``Range``. They arrive evenly over so many seconds; then ``here`` is printed.
They watch until the standard input ends, and say in one line of JSON what they saw. A process of
its own, so that its work is not counted as the server's.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

FIRST_VIEW = (0, 0)
_FILES = re.compile(r'(?:href|src)="((?:\.\./)?live-[0-9a-f]+\.(?:css|js))"')


@dataclass
class Seen:
    """What the watchers saw, in seconds and bytes; failed: requests, with words for the first."""

    requests: list[float] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)
    n_unchanged: int = 0
    n_failed: int = 0
    problem: str = ""
    first_bytes: int = 0
    bytes: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


class Watcher:
    """One open page."""

    def __init__(self, url: str, seen: Seen) -> None:
        """Watch at an address; what is seen is shared by all."""
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "localhost", parts.port or 80
        self._path, self._seen = parts.path, seen
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._tag = ""
        self._run: dict[str, Any] = {}
        self._has: set[str] = set()
        self._log, self._read = "", 0

    async def arrive(self) -> None:
        """Open the page: all that a browser fetches that has never been here."""
        begin = time.perf_counter()
        page = (await self._get(""))[1].decode()
        for name in dict.fromkeys(_FILES.findall(page)):
            await self._get(name, "Accept-Encoding: gzip\r\n")
        await self.poll()
        kind, example = FIRST_VIEW
        if "reel" in self._run:
            await self._get(f"reel-{self._run['reel']}-{kind}-{example}.bin")
        self._seen.arrivals.append(time.perf_counter() - begin)

    async def poll(self) -> float:
        """Ask what is new and fetch it; return after how many seconds to ask again."""
        known = f"If-None-Match: {self._tag}\r\n" if self._tag else ""
        status, content, tag = await self._get("run.json", known)
        if status == 304:
            self._seen.n_unchanged += 1
            return float(self._run["every"])
        self._run, self._tag = json.loads(content), tag
        spoken = self._run["languages"][0]
        for part in ("look", "now"):
            name = f"{part}-{self._run[part]}-{spoken}.json"
            if name not in self._has:
                await self._get(name)
                self._has.add(name)
        log = self._run["log"]
        if log["name"] != self._log:
            self._log, self._read = log["name"], 0
        if self._read < log["bytes"]:
            await self._read_log(log["bytes"])
        return float(self._run["every"])

    async def _read_log(self, end: int) -> None:
        is_first = self._read == 0  # who comes late gets the snapshots in a reel
        asked = f"Range: bytes={self._read}-{end - 1}\r\n"
        status, content, _tag = await self._get(self._log, asked)
        if status != 206 or not content.endswith(b"\n"):
            raise ValueError(f"{self._log} answered {status} with half a line")
        self._read += len(content)
        for line in map(json.loads, content.splitlines()):
            if line[0] == "snapshot" and not is_first:
                kind, example = FIRST_VIEW
                await self._get(f"{line[1]:08d}-{line[2]}-{kind}-{example}.bin")

    async def _get(self, name: str, headers: str = "") -> tuple[int, bytes, str]:
        """Return status, content and ETag. Raises OSError, EOFError and ValueError."""
        begin = time.perf_counter()
        try:
            answer = await self._ask(name, headers)
        except (OSError, EOFError):  # the server closed a connection that idled: a new one
            self.close()
            answer = await self._ask(name, headers)
        self._seen.requests.append(time.perf_counter() - begin)
        if answer[0] not in {200, 206, 304}:
            raise ValueError(f"{name or 'the page'} answered {answer[0]}")
        return answer

    async def _ask(self, name: str, headers: str) -> tuple[int, bytes, str]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        host = f"{self._host}:{self._port}"
        path = urljoin(self._path, name)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        said = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
        length = 0 if status == 304 else int(said.get(b"content-length", b"0"))
        content = await reader.readexactly(length)
        self._seen.bytes += len(head) + length
        if said.get(b"connection") == b"close":
            self.close()
        return status, content, said.get(b"etag", b"").decode()

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def crowd(url: str, n: int, seconds: float) -> Seen:
    """Let so many arrive in so many seconds, and watch until the standard input ends."""
    seen, ends, here = Seen(), asyncio.Event(), asyncio.Semaphore(0)
    generator = random.Random(n)

    async def watch(number: int) -> None:
        await asyncio.sleep(seconds * number / n)
        watcher = Watcher(url, seen)
        every, has_arrived = 1.0, False
        while not ends.is_set():
            try:
                if has_arrived:
                    every = await watcher.poll()
                else:
                    await watcher.arrive()
                    has_arrived = True
                    here.release()
            except (OSError, EOFError, ValueError, KeyError) as error:
                seen.n_failed += 1
                seen.problem = seen.problem or f"{type(error).__name__}: {error}"
                watcher.close()
            try:
                pause = every * generator.uniform(0.9, 1.1)
                await asyncio.wait_for(ends.wait(), pause)
            except TimeoutError:
                continue
        watcher.close()

    async with asyncio.TaskGroup() as tasks:
        for number in range(n):
            tasks.create_task(watch(number))
        for _ in range(n):
            await here.acquire()
        first, begin, spent = seen.bytes, time.perf_counter(), time.process_time()
        seen.requests.clear()
        seen.n_unchanged = 0
        print("here", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        seen.first_bytes, seen.bytes = first, seen.bytes - first
        seen.seconds = time.perf_counter() - begin
        seen.cpu_seconds = time.process_time() - spent
        ends.set()
    return seen


if __name__ == "__main__":
    found = asyncio.run(crowd(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
    print(json.dumps(asdict(found)), flush=True)
