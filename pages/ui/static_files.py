"""What is answered to who asks for a file of a published run or of the recorded ones.

What a browser has is not sent again: ``If-None-Match`` is answered by 304, and of a log that grew
``Range`` fetches the end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from email.utils import formatdate
from pathlib import Path

from starlette.datastructures import Headers

from pages.components.live import POLICY
from tfm_core.publish.folder import is_lasting, media_type
from tfm_core.reading import Unreadable, open_plain
from tfm_core.runs import settings

_ASKED_AGAIN = "no-cache"
_KEPT = "public, max-age=31536000, immutable"
_RANGE = re.compile(r"bytes=(\d{1,15})-(\d{0,15})")

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, content."""


def always(unused: Collection[str]) -> dict[str, str]:
    """Return the headers of every answer. unused: what a browser could let a page do."""
    frames = settings.read().frame_ancestors
    ancestors = "" if frames is None else f"; frame-ancestors {frames}"
    return {
        "accept-ranges": "bytes",
        "content-security-policy": POLICY + ancestors,
        "permissions-policy": ", ".join(f"{name}=()" for name in unused),
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }


def answered(path: Path, asked: Headers) -> Answer:
    """Return what is answered of a file to a request with these headers.

    A script or style sheet is sent compressed where the browser takes that and it lies there so.
    """
    if path.suffix in {".js", ".css"} and "gzip" in asked.get("accept-encoding", ""):
        status, said, content = _answered(path.with_name(f"{path.name}.gz"), asked)
        if status in {200, 304}:
            said |= {"content-type": media_type(path.name), "content-encoding": "gzip"}
            return status, said | {"vary": "accept-encoding"}, content
    return _answered(path, asked)


def _answered(path: Path, asked: Headers) -> Answer:
    try:
        file = open_plain(path)
    except (OSError, Unreadable):
        return 404, {"cache-control": "no-store"}, b""
    with os.fdopen(file, "rb") as opened:
        facts = os.fstat(opened.fileno())
        tag = f'"{facts.st_mtime_ns:x}-{facts.st_size:x}"'
        said = {
            "etag": tag,
            "last-modified": formatdate(facts.st_mtime, usegmt=True),
            "cache-control": _KEPT if is_lasting(path.name) else _ASKED_AGAIN,
        }
        known = asked.get("if-none-match", "")
        if tag in (one.strip().removeprefix("W/") for one in known.split(",")):
            return 304, said, b""
        said["content-type"] = media_type(path.name)
        part = _RANGE.fullmatch(asked.get("range", ""))
        if part is None or asked.get("if-range", tag) != tag:
            return 200, said, opened.read(facts.st_size)
        first, last = int(part[1]), min(int(part[2] or facts.st_size), facts.st_size - 1)
        if first > last:
            return 416, said | {"content-range": f"bytes */{facts.st_size}"}, b""
        opened.seek(first)
        said["content-range"] = f"bytes {first}-{last}/{facts.st_size}"
        return 206, said, opened.read(last - first + 1)
