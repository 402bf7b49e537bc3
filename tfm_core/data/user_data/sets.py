"""A custom set: a folder that is written once and never changed.

``set.json`` says what the set is and holds a digest of every other file, and the set is named by a
digest of ``set.json``: the same data, cut and split in the same way under the same name, is the
same set on every machine. What is read is compared with its digest, so nothing learns from a file
that was changed. ``kept.json`` names its owners, and since when it is kept. Sets lie below the
folder of runs, so that every worker finds them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from tfm_core import settings
from tfm_core.disk import rename, replace, sync_file, sync_folder
from tfm_core.reading import Unreadable, content_of, is_moment, json_of, object_of
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError
from tfm_core.stored import Stored, WrongValue, checked, line, whole

SPLITS = ("train", "validation", "test")
MAX_BYTES = 64 * 2**20
"""Of one set on the disk."""
MAX_NAME = 60
"""Characters of a set's name."""
EXAMPLE = "example-"
"""Prefix of the ids of sets that come with the app."""
ID = re.compile(rf"[0-9a-f]{{20}}|{EXAMPLE}[a-z]{{3,20}}")
OWNER = re.compile(r"[0-9a-f]{64}")
DRAFT = ".new-"
"""Prefix of a set's folder while it is written; leftovers are removed with those of runs."""

SET = "set.json"
"""The manifest in a set's folder."""

TOKENS = "tokens.json"
"""The tokenizers of a set's texts, and its vocabularies."""

VOCABULARY = "vocabulary"
"""In a run's folder: the manifest and the tokens of its set, without examples."""

FOLDER = "own-data"
"""The folder among the runs; no run is called that (see ``runs.run.ID``)."""

EXAMPLES = Path(__file__).resolve().parent / "examples"
"""Sets that come with the app: read-only."""

_RUNS: ContextVar[Path | None] = ContextVar("runs", default=None)

_KEPT = "kept.json"
_FILE = re.compile(r"[a-z][a-z0-9-]{0,30}\.[a-z0-9]{2,12}")
_MAX_SET, _MAX_KEPT, _MAX_NUMBER = 2**20, 2**16, 10**9
_MAX_FILES = 12


def _is_file(name: str) -> bool:
    """Return whether a set may have a file of that name, besides those of every set."""
    return bool(_FILE.fullmatch(name)) and name not in (SET, _KEPT)


def root() -> Path:
    """Return the folder of sets, which need not be there yet."""
    runs = _RUNS.get() or settings.read().runs_dir
    return runs.absolute() / FOLDER


@contextmanager
def below(runs: Path) -> Iterator[None]:
    """Use the sets below this folder of runs, as a worker does for its run."""
    before = _RUNS.set(runs)
    try:
        yield
    finally:
        _RUNS.reset(before)


class SetMissing(StudentError):
    """There is no such set on this machine."""


class SetDamaged(StudentError):
    """A file of a set is gone, was changed, or cannot be understood."""


def damaged(name: str, why: str = "") -> SetDamaged:
    """Return the error for a set of this name. why: a clause, that it was changed if not given."""
    return SetDamaged(
        Paragraph("own-data/damaged", name=name, why=why or N_("{file} was changed", file=SET))
    )


@dataclass(frozen=True, slots=True)
class SetFacts:
    """What a set is."""

    kind: Annotated[str, line(20)]  # a name in ``kinds.SET_KINDS``
    name: Annotated[str, line(MAX_NAME)]
    # examples of "train", "validation" and "test"
    counts: Mapping[str, Annotated[int, whole(0, _MAX_NUMBER)]]
    split: Mapping[str, Any]  # such as ``{"by": "seed", "seed": 0}`` or ``{"by": "file"}``
    details: Mapping[str, Any]  # facts of the kind, plain JSON: lengths, vocabularies, classes


_FACTS = tuple(field.name for field in fields(SetFacts))


def _facts_of(facts: SetFacts | UserSet) -> dict[str, Any]:
    return {name: getattr(facts, name) for name in _FACTS}


@dataclass(frozen=True, slots=True)
class Prepared(SetFacts):
    """A set that is ready to be written."""

    files: Mapping[str, bytes]  # by name: JSON, texts and safetensors, never pickles

    @property
    def n_bytes(self) -> int:
        """Bytes on the disk."""
        return sum(map(len, self.files.values()))


@dataclass(frozen=True, slots=True, eq=False)
class UserSet:
    """A set as its folder says; facts as ``SetFacts`` has them, ``files`` by their digests."""

    id: str
    folder: Path
    kind: str = ""
    name: str = ""  # of an example a sentence of the app
    counts: Mapping[str, int] = field(default_factory=dict)
    split: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    owners: tuple[str, ...] = ()  # hashes of who keeps it, none of the command line or the app
    kept: str = ""  # since when, ISO 8601
    problem: str | None = None  # what is damaged; the other fields are then placeholders

    @property
    def is_example(self) -> bool:
        """Whether it comes with the app and cannot be removed."""
        return self.folder.parent == EXAMPLES

    @property
    def has_examples(self) -> bool:
        """Whether it is a whole set, not just a run's copy of the vocabulary."""
        return self.folder.parent.name != VOCABULARY

    @property
    def n_bytes(self) -> int:
        """Bytes on the disk. Never raises."""
        sizes = 0
        for name in (*self.files, SET):
            with contextlib.suppress(OSError):
                sizes += (self.folder / name).stat().st_size
        return sizes

    def content(self, name: str) -> bytes:
        """Return a file as it was written. Raises SetDamaged."""
        try:
            content = content_of(self.folder / name, most=MAX_BYTES)
        except FileNotFoundError:
            raise damaged(self.name, N_(_GONE, file=name)) from None
        except Unreadable as error:
            raise damaged(self.name, error.sentence) from None
        if self.files.get(name) != _digest(content):
            raise damaged(self.name, N_(_CHANGED, file=name))
        return content


@dataclass(frozen=True, slots=True)
class _SetFile(SetFacts):
    """What ``set.json`` holds, as ``_manifest`` writes it."""

    format: Literal[1]
    files: dict[Annotated[str, checked(_is_file)], Annotated[str, line(64)]]


_STORED = Stored(_SetFile, SET)
_GONE, _CHANGED, _NO_JSON = (
    N_("{file} is missing"),
    N_("{file} was changed"),
    N_("{file} is not JSON"),
)


def id_of(prepared: Prepared) -> str:
    """Return the id of the set of this content."""
    return _digest(_manifest(prepared))[:20]


def write(prepared: Prepared, *, owner: str | None = None, parent: Path | None = None) -> UserSet:
    """Write a set atomically and return it; an existing one stays as it is.

    parent: the folder of sets, by default ``root()``. Raises OSError, and ValueError, in a
    sentence, for what is too large.
    """
    if prepared.n_bytes > MAX_BYTES:
        raise StudentError(
            "This set has {size:,} bytes; the limit is {most:,}.",
            size=prepared.n_bytes,
            most=MAX_BYTES,
        )
    assert all(map(_is_file, prepared.files)), "names of files are plain"
    target = (parent or root()) / id_of(prepared)
    if not target.is_dir():
        _write_files(files_of(prepared), target)
    user_set = opened(target)
    owners = dict.fromkeys([*user_set.owners, *([owner] if owner else [])])
    if tuple(owners) != user_set.owners or not user_set.kept:
        now = user_set.kept or datetime.now(UTC).isoformat(timespec="seconds")
        _replace(target / _KEPT, {"owners": list(owners), "kept": now})
        user_set = opened(target)
    return user_set


def give_up(user_set: UserSet, owner: str) -> bool:
    """Remove an owner from a set; return whether others remain. Raises OSError."""
    remaining = [keeper for keeper in user_set.owners if keeper != owner]
    if remaining:
        _replace(user_set.folder / _KEPT, {"owners": remaining, "kept": user_set.kept})
    return bool(remaining)


def files_of(prepared: Prepared) -> dict[str, bytes]:
    """Return every file of a set, ``set.json`` among them."""
    return {**prepared.files, SET: _manifest(prepared)}


def as_prepared(user_set: UserSet) -> Prepared:
    """Return a set as it can be written elsewhere. Raises SetDamaged."""
    files = {name: user_set.content(name) for name in user_set.files}
    return Prepared(**_facts_of(user_set), files=files)


def read_from(read: Callable[[str, int], bytes]) -> Prepared:
    """Return the set whose files ``read(name, max_bytes)`` returns.

    What it is called follows from its content (``id_of``). Raises Unreadable, with a clause on
    what is wrong, and whatever ``read`` raises.
    """
    manifest = _set_of(read(SET, _MAX_SET))
    if len(manifest.files) > _MAX_FILES:
        raise Unreadable("{file} is damaged", file=SET)
    room, files = MAX_BYTES, {}
    for name, digest in manifest.files.items():
        files[name] = read(name, room)
        room -= len(files[name])
        if _digest(files[name]) != digest:
            raise Unreadable(_CHANGED, file=name)
    return Prepared(**_facts_of(manifest), files=files)


def find(set_id: str) -> UserSet:
    """Return a set by its id. Raises SetMissing and SetDamaged."""
    folder = folder_of(set_id)
    if folder is None:
        raise SetMissing(Paragraph("own-data/missing", set_id=set_id[:40]))
    user_set = opened(folder)
    if user_set.problem is not None:
        raise damaged(user_set.name or set_id, user_set.problem)
    return user_set


def find_vocabulary(set_id: str) -> UserSet:
    """Return a set, or a run's copy of its vocabulary. Raises SetMissing and SetDamaged.

    Copies are verified by the digests of the set, so that of any run will do.
    """
    try:
        return find(set_id)
    except (SetMissing, SetDamaged):
        if ID.fullmatch(set_id):
            for folder in sorted(root().parent.glob(f"*/{VOCABULARY}/{set_id}")):
                user_set = opened(folder)
                if user_set.problem is None and TOKENS in user_set.files:
                    return user_set
        raise


def vocabulary_of(user_set: UserSet) -> dict[str, bytes]:
    """Return the files that a run keeps of a set: none of pictures. Raises SetDamaged."""
    if TOKENS not in user_set.files:
        return {}
    return {SET: _manifest(user_set), TOKENS: user_set.content(TOKENS)}


def read_vocabulary(set_id: str, read: Callable[[str, int], bytes]) -> dict[str, bytes]:
    """Return the files of a set's vocabulary as ``read`` returns them; see ``read_from``.

    Raises Unreadable, with a clause, where they are not those of the set of this id.
    """
    files = {SET: read(SET, _MAX_SET)}
    manifest = _set_of(files[SET])
    if _digest(files[SET])[:20] != set_id:
        raise Unreadable(_CHANGED, file=SET)
    files[TOKENS] = read(TOKENS, MAX_BYTES)
    if manifest.files.get(TOKENS) != _digest(files[TOKENS]):
        raise Unreadable(_CHANGED, file=TOKENS)
    return files


def write_vocabulary(folder: Path, set_id: str, files: Mapping[str, bytes]) -> None:
    """Write the files of ``vocabulary_of`` into a run's folder, unless they are there.

    Raises OSError.
    """
    target = folder / VOCABULARY / set_id
    if not files or target.is_dir():
        return
    target.parent.mkdir(exist_ok=True)
    _write_files(files, target)


def check(task: object) -> None:
    """Raise SetMissing or SetDamaged where a task's set is not complete here."""
    if set_id := set_of(task):
        find(set_id)


def missing(task: object) -> str | None:
    """Return why a task's set cannot be used here, or None."""
    try:
        check(task)
    except (SetMissing, SetDamaged) as error:
        return error.sentence
    return None


def set_of(task: object) -> str:
    """Return the id of the set that a task learns from, "" where it learns from none."""
    return str(getattr(task, "data", ""))


def added_of(task: object) -> str:
    """Return the id of a task's set if it was added by a user, else ""."""
    set_id = set_of(task)
    return "" if set_id.startswith(EXAMPLE) else set_id


def folder_of(set_id: str) -> Path | None:
    """Return the folder of a set, or None. Never raises."""
    if not ID.fullmatch(set_id):
        return None
    parent = EXAMPLES if set_id.startswith(EXAMPLE) else root()
    return parent / set_id if os.path.isdir(parent / set_id) else None


def listed(parent: Path | None = None) -> list[UserSet]:
    """Return the sets that were added here, newest first, the damaged too. Never raises."""
    try:
        with os.scandir(parent or root()) as entries:
            folders = [
                Path(entry.path) for entry in entries if ID.fullmatch(entry.name) and entry.is_dir()
            ]
    except OSError:
        return []
    return sorted(
        map(opened, folders), key=lambda user_set: (user_set.kept, user_set.id), reverse=True
    )


def examples() -> list[UserSet]:
    """Return the sets that come with the app, by name. Never raises."""
    return listed(EXAMPLES)[::-1]


def opened(folder: Path) -> UserSet:
    """Return the set in a folder, with what is wrong with it. Never raises."""
    name, is_example = folder.name, folder.parent == EXAMPLES
    try:
        content = content_of(folder / SET, most=_MAX_SET)
        manifest = _set_of(content)
        if not is_example and _digest(content)[:20] != name:
            raise Unreadable(_CHANGED, file=SET)
    except FileNotFoundError:
        return UserSet(name, folder, name=name, problem=N_(_GONE, file=SET))
    except Unreadable as error:
        return UserSet(name, folder, name=name, problem=error.sentence)
    owners, since = _keepers(folder)
    facts = _facts_of(manifest)
    if is_example:
        facts["name"] = Sentence(manifest.name)
    return UserSet(name, folder, **facts, files=manifest.files, owners=owners, kept=since)


def _set_of(content: bytes) -> _SetFile:
    """Return what a ``set.json`` says. Raises Unreadable, with a clause."""
    try:
        return _STORED.read(json_of(content))
    except WrongValue:
        raise Unreadable("{file} is damaged", file=SET) from None
    except ValueError:
        raise Unreadable(_NO_JSON, file=SET) from None


def _write_files(files: Mapping[str, bytes], target: Path) -> None:
    """Write a folder atomically. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"{DRAFT}{secrets.token_hex(6)}")
    try:
        draft.mkdir()
        for name, content in files.items():
            (draft / name).write_bytes(content)
            sync_file(draft / name)
        sync_folder(draft)
        rename(draft, target)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not target.is_dir():  # else another visitor has added the same at this moment
            raise
    sync_folder(target.parent)


def _manifest(prepared: Prepared | UserSet) -> bytes:
    """Return what ``set.json`` holds: the same bytes for the same set."""
    digests = (
        prepared.files
        if isinstance(prepared, UserSet)
        else {name: _digest(content) for name, content in prepared.files.items()}
    )
    values = {"format": 1, "files": dict(digests), **_facts_of(prepared)}
    return (json.dumps(values, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def _keepers(folder: Path) -> tuple[tuple[str, ...], str]:
    """Return a set's owners and since when it is kept, empty if the file is damaged."""
    try:
        values = object_of(folder / _KEPT, most=_MAX_KEPT)
    except (FileNotFoundError, Unreadable):
        return (), ""
    owners, since = values.get("owners"), values.get("kept")
    owners = owners if isinstance(owners, list) else []
    sound = tuple(owner for owner in owners if isinstance(owner, str) and OWNER.fullmatch(owner))
    return sound, str(since) if is_moment(since) else ""


def _replace(path: Path, values: Mapping[str, Any]) -> None:
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        beside.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
        replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
