"""A store at an address of fsspec: objects listed, read, and written whole, also exclusively.

Every failure is one of four sentences (``StoreUnavailable``); the log has the rest.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from tfm_core.runs.disk.atomic import write_bytes
from tfm_core.sentences import N_, Sentence, StudentError

SILENT = N_("The store (TFM_RUNS_URL) does not respond. Runs continue here.")
REFUSED = N_("The store (TFM_RUNS_URL) refuses the credentials. Runs continue here.")
FULL = N_("The store (TFM_RUNS_URL) is full. Delete old runs. Runs continue here.")
NOT_THERE = N_("The bucket or folder of TFM_RUNS_URL does not exist. Runs continue here.")

_REFUSALS = {
    "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken",
    "AllAccessDisabled", "AccountProblem", "401", "403",
}  # fmt: skip
_NO_ROOM = {
    "QuotaExceeded", "QuotaExceededException", "InsufficientStorage", "XMinioStorageFull",
    "XMinioAdminBucketQuotaExceeded", "StorageFull", "507",
}  # fmt: skip
_NAMED = {
    "NoCredentialsError": REFUSED,
    "PartialCredentialsError": REFUSED,
    "NoSuchBucket": NOT_THERE,
    "ParamValidationError": NOT_THERE,
}
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss"}
_CONNECT_SECONDS, _READ_SECONDS = 5, 30

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")
Other = TypeVar("Other")


class StoreUnavailable(StudentError):
    """The store cannot be used; ``sentence`` says why."""


class AlreadyExists(Exception):
    """An object that was to be written exclusively exists."""


class Remote:
    """A store; safe to use from many threads."""

    def __init__(self, url: str) -> None:
        """Open an address of fsspec, without a request. Raises StoreUnavailable."""
        import fsspec

        self.key = hashlib.sha256(url.encode()).hexdigest()[:12]
        protocol = fsspec.core.split_protocol(url)[0] or "file"
        options: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
        if protocol in {"s3", "s3a"}:
            options["config_kwargs"] = {
                "connect_timeout": _CONNECT_SECONDS,
                "read_timeout": _READ_SECONDS,
                "retries": {"max_attempts": 1},
            }
        with _as_unavailable():
            self._fs, root = fsspec.core.url_to_fs(url, **options)
        if hasattr(self._fs, "retries"):
            self._fs.retries = 1  # the mirror tries again, and says so meanwhile
        self._root = str(root).rstrip("/")
        self._is_local = protocol in {"file", "local"}
        self._has_folders = protocol not in _OBJECT_STORES

    def listing(self, folder: str) -> dict[str, str]:
        """Return the names in a folder, each with a tag that changes with its content.

        Raises StoreUnavailable.
        """
        nothing: list[dict[str, Any]] = []
        found = self._ask(lambda: self._fs.ls(self._at(folder), detail=True), missing=nothing)
        names = {one["name"].rstrip("/").rpartition("/")[2]: one for one in found}
        return {name: _tag(one) for name, one in names.items() if one["type"] == "file"}

    def read(self, name: str) -> bytes | None:
        """Return the content of a small object, or None. Raises StoreUnavailable."""
        return self._ask(lambda: bytes(self._fs.cat_file(self._at(name))), missing=None)

    def fetch(self, name: str, path: Path) -> bool:
        """Write an object into a file; return whether there is one. Raises StoreUnavailable."""

        def get() -> bool:
            self._fs.get_file(self._at(name), str(path))
            return True

        return self._ask(get, missing=False)

    def write(self, name: str, content: bytes) -> None:
        """Write an object, whole. Raises StoreUnavailable."""
        with _as_unavailable():
            self._check()
            if self._is_local:
                path = Path(self._at(name))
                path.parent.mkdir(parents=True, exist_ok=True)
                write_bytes(path, content)
            else:
                self._make_folder(name)
                self._fs.pipe_file(self._at(name), content)

    def upload(self, path: Path, name: str) -> None:
        """Upload a file that nobody changes meanwhile. Raises StoreUnavailable."""
        with _as_unavailable():
            self._check()
            self._make_folder(name)
            self._fs.put_file(str(path), self._at(name))

    def create(self, name: str, content: bytes) -> None:
        """Write an object that must not exist. Raises AlreadyExists and StoreUnavailable."""
        try:
            with _as_unavailable():
                self._check()
                self._make_folder(name)
                self._fs.pipe_file(self._at(name), content, mode="create")
        except FileExistsError:
            raise AlreadyExists from None

    def remove(self, *names: str) -> None:
        """Remove objects, if they exist. Raises StoreUnavailable."""
        for name in names:
            with _as_unavailable():
                self._check()
                try:
                    self._fs.rm_file(self._at(name))
                except FileNotFoundError:
                    continue

    def _ask(self, read: Callable[[], Answer], missing: Other) -> Answer | Other:
        """Return what is read, ``missing`` if it is not there. Raises StoreUnavailable."""
        with _as_unavailable():
            self._check()
            try:
                return read()
            except FileNotFoundError as error:
                if _code(error) == "NoSuchBucket":
                    raise
                return missing

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _check(self) -> None:
        """Raise FileNotFoundError if a shared folder is not mounted: it must not be created."""
        if self._is_local and not os.path.isdir(self._root):
            raise FileNotFoundError(errno.ENOENT, NOT_THERE, self._root)

    def _make_folder(self, name: str) -> None:
        if self._has_folders:
            self._fs.makedirs(self._at(name).rpartition("/")[0], exist_ok=True)


@cache
def remote_of(url: str) -> Remote:
    """Return the store at an address, one per process. Raises StoreUnavailable."""
    return Remote(url)


def why_not(error: BaseException) -> Sentence:
    """Return why the store failed, in a sentence."""
    code = _code(error)
    name = type(error).__name__
    if name in _NAMED or code in _NAMED:
        return _NAMED.get(name) or _NAMED[code]
    if code in _REFUSALS or isinstance(error, PermissionError):
        return REFUSED
    number = getattr(error, "errno", None)
    if code in _NO_ROOM or number in {errno.ENOSPC, errno.EDQUOT}:
        return FULL
    if isinstance(error, FileNotFoundError):
        return NOT_THERE
    return SILENT


@contextmanager
def _as_unavailable() -> Iterator[None]:
    """Raise StoreUnavailable in place of any error of fsspec but FileExistsError."""
    try:
        yield
    except FileExistsError:
        raise
    except Exception as error:  # each has its own kinds
        if _code(error) == "PreconditionFailed":
            raise FileExistsError from None
        logger.debug("The store refused: %s", error, exc_info=error)
        raise StoreUnavailable(why_not(error)) from error


def _code(error: BaseException) -> str:
    """Return the code that an S3 server answered with, or ""."""
    at: BaseException | None = error
    while at is not None:
        response = getattr(at, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
        at = at.__cause__
    return ""


def _tag(facts: dict[str, Any]) -> str:
    """Return a tag that changes with the content of an object."""
    etag = facts.get("ETag") or facts.get("etag")
    if etag:
        return str(etag)
    times = {name: facts[name] for name in ("size", "mtime", "ino", "created") if name in facts}
    return json.dumps(times, default=str)
