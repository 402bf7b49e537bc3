"""Every reader of files of others, given files that are small and cost much.

``python -m tests.bombs FOLDER`` reads them all in one process, whose memory is limited, and prints
a line of JSON a file: its name, its outcome, processor seconds. The last line has the modules
that read through ``tfm_core.reading``.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import resource
import shutil
import struct
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.data.user_data.files import read_pictures
from tests.pretrained.with_tokenizer import folder_with_tokenizer
from tests.runs.comparing import stopping_at
from tests.runs.waiting import tiny
from tfm_core import reading
from tfm_core.choices.config import from_json
from tfm_core.data.opened_folder import open_folder, read_tokenizer
from tfm_core.data.user_data import sets
from tfm_core.data.user_data.kinds import report_of
from tfm_core.data.user_data.pictures import PictureForm
from tfm_core.data.user_data.task import user_vocabulary
from tfm_core.data.user_data.text_files import read_upload
from tfm_core.data.user_picture import opened as opened_picture
from tfm_core.export import bundle, importer
from tfm_core.lessons import attempts, lesson, results
from tfm_core.looking import file as look_file
from tfm_core.looking.seen import Seen
from tfm_core.pretrained import heads
from tfm_core.pretrained.model import check_folder
from tfm_core.runs import snapshots
from tfm_core.runs.disk.atomic import read_json
from tfm_core.runs.process.execute import execute
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError
from tfm_core.sweeps import plan
from tfm_core.sweeps.store import Sweep, read_trials
from tfm_core.training.checkpoints import load_model

ROOM = 900 * 2**20
"""Bytes that a reader may take, twice what an upload may unpack to."""
GUARDS = ("check_header", "content_of", "json_of", "object_of", "open_tensors", "toml_of", "zip_of")
MET: set[str] = set()
"""Modules that called a guard."""
MILLION = 10**6


def jsons() -> dict[str, bytes]:
    """Return JSON that is deep, wide or holds a number of many digits."""
    return {
        "lists in lists": b"[" * 200_000 + b"]" * 200_000,
        "objects in objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        "objects in objects, some": b'{"id":' * 150 + b"1" + b"}" * 150,
        "5,000 digits": b'{"version": %s}' % (b"9" * 5_000),
        "4,000 digits": b'{"version": %s, "steps": %s}' % (b"9" * 4_000, b"9" * 4_000),
        "six million lists": b"[" + b"[]," * 6 * MILLION + b"[]]",
        "six million objects": b'{"a": [' + b"{}," * 6 * MILLION + b"{}]}",
    }


def tomls() -> dict[str, bytes]:
    """Return TOML of at most 64 kB."""
    lists = "".join("[\n{" + "a." * 90 + "a=" for _line in range(300))
    return {
        "a dotted key": b"a." * 32_000 + b"a = 1",
        "a dotted table": b"[" + b"a." * 32_000 + b"a]",
        "dots with quotes": b'"a" . ' * 10_000 + b"a = 1",
        "dots over lines": b"x = " + lists.encode(),
        "5,000 digits": b"minutes = " + b"9" * 5_000,
        "50,000 hexadecimal digits": b"minutes = 0x" + b"f" * 50_000,
        "lists in lists": b"minutes = " + b"[" * 30_000,
        "tables in tables": b"x = " + b"{a=" * 20_000,
        "some lists": b"id = " + b"[" * 200 + b"]" * 200,
        "a date": b"id = 9999-12-31T23:59:60Z\nminutes = nan",
    }


def tensors(header: bytes, n_bytes: int | None = None) -> bytes:
    """Return a safetensors file of a header."""
    return struct.pack("<Q", len(header) if n_bytes is None else n_bytes) + header


def safetensors() -> dict[str, bytes]:
    """Return safetensors files whose headers are long, deep or wrong."""
    one = b'"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    huge = b'{"a":{"dtype":"F32","shape":[%d,0],"data_offsets":[0,0]}}' % 10**18
    mark = json.dumps({"__metadata__": {look_file.MARK: "[" * 100_000, "trainer": "[" * 100_000}})
    return {
        "a header of all bytes": tensors(b"{}", 2**63),
        "a header of spaces": tensors(b"{}" + b" " * 20 * MILLION),
        "900,000 tensors": tensors(b"{" + b",".join(one % n for n in range(900_000)) + b"}"),
        "a deep header": tensors(b'{"a":' * 100_000),
        "5,000 digits": tensors(b'{"__metadata__": {}, "a": %s}' % (b"9" * 5_000)),
        "a shape beyond its bytes": tensors(huge),
        "bytes beyond the file": tensors(
            b'{"a":{"dtype":"F32","shape":[1000000000],"data_offsets":[0,4000000000]}}'
        ),
        "deep metadata": tensors(mark.encode()),
        "a pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 400000000\n",
    }


def zips() -> dict[str, bytes]:
    """Return zips with many entries, and with entries that unpack to much."""
    entry = struct.pack("<4s6H3L5H2L", b"PK\1\2", *[0] * 16)
    n = 400_000
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(entry) * n, 0, 0)
    return {
        "400,000 entries": b"PK\3\4" + entry * n + end,
        "zeros": _zip({"a/1.png": bytes(50 * MILLION), "experiment.json": b"{}"}),
        "an array of zeros": _zip({"x.npy": _npy((10**9, 10**9)), "y.npy": _npy((3,))}),
        "labels of an array": _zip({"y.npy": _npy((400 * MILLION,))}),
        "lines in a table": _zip({"train.csv": b"label" + b",1" * 16 + b"\n" * 130 * MILLION}),
    }


def _zip(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def _npy(shape: tuple[int, ...]) -> bytes:
    words = repr({"descr": "|u1", "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(words)) + words


def packed() -> dict[str, bytes]:
    """Return gzips that unpack to 130 MB."""
    n = 130 * MILLION
    head = b"label," + b",".join(b"%d" % one for one in range(16)) + b"\n"
    return {
        "labels.idx1.gz": _gzip(struct.pack(">BBBBI", 0, 0, 8, 1, n), b"\0"),
        "lines.csv.gz": _gzip(head, b"\n"),
        "cells.csv.gz": _gzip(head, b","),
        "cells of a first line.csv.gz": _gzip(b"", b","),
    }


def _gzip(head: bytes, byte: bytes) -> bytes:
    return gzip.compress(head) + gzip.compress(byte * MILLION) * 130


def pictures() -> dict[str, bytes]:
    """Return pictures whose headers say many pixels."""
    size = struct.pack("<HH", 16383, 16383)
    return {
        "GIF": b"GIF89a" + b"\xff\xff\xff\xff" + b"\0\0\0" + b",\0\0\0\0" + b"\xff\xff\xff\xff\0",
        "BMP": b"BM" + bytes(12) + struct.pack("<LllHHLLllLL", 40, 60_000, 60_000, 1, 24, *[0] * 6),
        "WebP": b"RIFF\x16\0\0\0WEBPVP8 \x0a\0\0\0\x10\0\0\x9d\x01\x2a" + size,
    }


def tokenizers() -> dict[str, bytes]:
    """Return tokenizers that hang, grow, or have no token for the unknown."""
    grow = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    words = {"[CLS]": 0, "b": 1}
    return {
        name: json.dumps({"version": "1.0", "added_tokens": [], **one}).encode()
        for name, one in {
            "a word is replaced by two": {
                "normalizer": {"type": "Sequence", "normalizers": [grow] * 40},
                "model": {"type": "WordLevel", "vocab": words, "unk_token": "b"},
            },
            "sequences in sequences": {
                "normalizer": {
                    "type": "Sequence",
                    "normalizers": [{"type": "Sequence", "normalizers": [grow] * 20}] * 2,
                },
                "model": {"type": "WordLevel", "vocab": words, "unk_token": "b"},
            },
            "bytes of bytes": {
                "normalizer": {"type": "Sequence", "normalizers": [bytes_] * 30},
                "model": {"type": "WordLevel", "vocab": words, "unk_token": "b"},
            },
            "tokens grow": {
                "decoder": {"type": "Sequence", "decoders": [grow] * 40},
                "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"},
            },
            "WordPiece without [UNK]": {
                "model": {
                    "type": "WordPiece",
                    "vocab": words,
                    "unk_token": "[UNK]",
                    "continuing_subword_prefix": "##",
                    "max_input_chars_per_word": 100,
                }
            },
            "WordLevel without [UNK]": {
                "model": {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"}
            },
            "Unigram without unk_id": {
                "model": {"type": "Unigram", "vocab": [["b", 0.0]], "unk_id": None}
            },
        }.items()
    }


def texts() -> dict[str, bytes]:
    """Return texts that are no JSON and cost a reader of lines much."""
    return {
        "tabs": b"\t" * 10 * MILLION,
        "lines": b"\n" * 10 * MILLION + b"a\tb",
        "quotes": b'"a,' * 300_000,
        "columns of Anki": b"#columns:" + b"\t" * 10 * MILLION + b"\n" + b"\t" * 10 * MILLION,
        "tags of Anki": b"#html:true\n" + b"<br<a&" * 3 * MILLION + b"\tb",
        "messages": b'{"messages": [' + b'{"role":"user"},' * 900_000 + b'{"role":"user"}]}',
        "a word that is not UTF-8": b"\xb0\xa1" * 10 * MILLION,
        "zero bytes": b"a\0" * 10 * MILLION,
    }


class Readers:
    """What is read, each by its name in the app; every reader takes the content of a file."""

    def __init__(self, folder: Path) -> None:
        """Make what lies around the files that are read."""
        self.folder = folder
        self.store = RunStore(folder / "runs", recorded=None)
        self.run = self.store.create(tiny(5, snapshots=2))
        execute(self.run, *stopping_at(3, self.run))
        self.look = folder / "look.safetensors"
        self.model = folder_with_tokenizer("gpt2", folder / "gpt2")
        self.zip = bundle.bundle(self.run)

    def lesson(self, content: bytes) -> None:
        """Read a lesson in a teacher's folder, beside a good one."""
        lesson.made("x.toml", content, {"en": ("x.md", b"# Title\n")})

    def lesson_words(self, content: bytes) -> None:
        """Read the text of a lesson."""
        lesson.made("x.toml", b'id = "x"\n', {"en": ("x.md", content)})

    def result(self, content: bytes) -> None:
        """Check the line of a pupil's result."""
        line = f"tfm1.{base64.urlsafe_b64encode(content[:14_000]).decode()}.{'0' * 64}"
        results.check([("file", line)], b"0" * 32)

    def attempt(self, content: bytes) -> None:
        """Read what a pupil answered."""
        file = self.store.root / attempts.FOLDER / "width" / f"{'0' * 64}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        attempts.attempts("width", root=self.store.root)

    def configuration(self, content: bytes) -> None:
        """Read a configuration that was pasted."""
        from_json(content)

    def sweep(self, content: bytes) -> None:
        """Read the plan of a sweep."""
        (self.folder / plan.FILE).write_bytes(content)
        plan.read(self.folder)

    def trials(self, content: bytes) -> None:
        """Read the trials of a sweep."""
        sweep = Sweep(self.folder)
        sweep.trials.write_bytes(content)
        read_trials(sweep)

    def table(self, content: bytes) -> None:
        """Read pairs or labelled sentences."""
        read_upload(content)

    def pictures(self, content: bytes, name: str = "set.zip") -> None:
        """Read a set of pictures."""
        read_pictures([(name, content)], PictureForm())

    def picture(self, content: bytes) -> None:
        """Read one picture."""
        opened_picture(content)

    def run_zip(self, content: bytes) -> None:
        """Import a run from a zip."""
        importer.import_run(io.BytesIO(content), self.store)

    def member(self, content: bytes, name: str) -> None:
        """Import a run, one file of whose zip is another's."""
        file = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(self.zip)) as old, zipfile.ZipFile(file, "w") as new:
            for one in old.namelist():
                new.writestr(one, content if one == name else old.read(one))
        importer.import_run(file, self.store)

    def look_of(self, content: bytes) -> None:
        """Open a look."""
        self.look.write_bytes(content)
        look_file.load(self.look, Seen)

    def in_model(self, content: bytes, name: str) -> None:
        """Open a folder of Transformers, one file of which is another's."""
        folder = self.folder / "changed"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.model, folder)
        (folder / name).write_bytes(content)
        if name.endswith("index.json"):
            (folder / "model.safetensors").unlink()
        if name != "tokenizer.json":
            open_folder(folder)
        words = read_tokenizer(folder, n_words=37)
        words.text_of(words.cut("a cat, aaaa é"))
        assert words.unknown_id is None or words.unknown_id >= 0

    def in_words(self, content: bytes, name: str) -> None:
        """Open lists of words in place of a tokenizer.json, one of which is another's."""
        folder = self.folder / "words"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        files = {"vocab.txt": b"[CLS]\n[SEP]\na"}
        if name in ("vocab.json", "merges.txt"):
            files = {"vocab.json": b'{"a": 0, "b": 1, "ab": 2}', "merges.txt": b"a b"}
        for one, given in (files | {name: content}).items():
            (folder / one).write_bytes(given)
        words = read_tokenizer(folder, n_words=37)
        words.text_of(words.cut("a cat, aaaa é"))
        words.lost("a cat, aaaa é")

    def in_adapter(self, content: bytes, name: str) -> None:
        """Open an adapter of a model, one file of which is another's."""
        folder = self.folder / "adapter"
        folder.mkdir(exist_ok=True)
        settings = {"peft_type": "LORA", "r": 2, "lora_alpha": 2, "base_model_name_or_path": "gpt2"}
        (folder / "adapter_config.json").write_text(json.dumps(settings))
        (folder / "adapter_model.safetensors").write_bytes(b"")
        (folder / name).write_bytes(content)
        check_folder(folder)

    def head(self, content: bytes) -> None:
        """Read the head of a model in a run's folder."""
        (self.folder / heads.FILE).write_bytes(content)
        heads.read_head(self.folder)

    def in_run(self, content: bytes, name: str) -> None:
        """Show a run, one file of which is another's."""
        folder = self.store.root / "changed"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.run.folder, folder)
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        run = Run(folder)
        assert run.status.state
        read_json(run.folder / "status.json")
        assert run.meta.name
        run.thinned_curves()
        run.curves()
        assert run.step_of_checkpoint("last") is not None or name.startswith("checkpoints")
        experiment = run.experiment
        run.probe()
        run.snapshot(0)
        snapshots.read_weights(folder, 0)
        load_model(experiment, folder / "checkpoints" / "last")
        bundle.bundle(run)

    def own_set(self, content: bytes, name: str, kind: str) -> None:
        """Show and train a set, one file of which is another's; its digests are right."""
        files = {"tokens.json": b"[]", **{f"{one}.jsonl": b"" for one in ("train", "validation")}}
        prepared = sets.Prepared(
            kind, "x", {"train": 1}, {}, {"unit": "word"}, {**files, name: content}
        )
        with sets.below(self.store.root):
            own = sets.write(prepared)
            report_of(own)
            if kind != "pictures":
                user_vocabulary(own.id)


def bombs(readers: Readers) -> dict[str, Callable[[], object]]:
    """Return what is read, by a name that says what and how."""
    found: dict[str, Callable[[], object]] = {}

    def add(called: str, made: dict[str, bytes], read: Callable[..., object], *more: str) -> None:
        for name, content in made.items():
            found[f"{called}: {name}"] = lambda content=content: read(content, *more)

    every_json, every_safetensors = jsons(), safetensors()
    add("lesson", tomls(), readers.lesson)
    add("words of a lesson", texts(), readers.lesson_words)
    add("result", every_json, readers.result)
    add("attempt", every_json, readers.attempt)
    add("configuration", every_json, readers.configuration)
    add("sweep", every_json, readers.sweep)
    add("trials of a sweep", every_json, readers.trials)
    add("table", every_json | texts() | zips(), readers.table)
    add("zip of pictures", zips(), readers.pictures)
    add("zip of a run", zips(), readers.run_zip)
    for name, content in packed().items():
        add(name, {"130 MB": content}, readers.pictures, name)
    add("picture", pictures(), readers.picture)
    add("look", every_safetensors, readers.look_of)
    for name in ("experiment.json", "run.json", "run/probe.json", "run/events.jsonl"):
        add(f"{name} in a zip", every_json, readers.member, name)
    add("weights in a zip", every_safetensors, readers.member, "weights.safetensors")
    for name in ("config.json", "model.safetensors.index.json", "tokenizer.json"):
        add(name, every_json, readers.in_model, name)
    add("tokenizer.json", tokenizers(), readers.in_model, "tokenizer.json")
    add("model.safetensors", every_safetensors, readers.in_model, "model.safetensors")
    for name in ("vocab.txt", "vocab.json", "merges.txt"):
        add(name, every_json | texts(), readers.in_words, name)
    for name in ("tokenizer_config.json", "added_tokens.json"):
        add(name, every_json, readers.in_words, name)
    add("adapter_config.json", every_json, readers.in_adapter, "adapter_config.json")
    add("adapter", every_safetensors, readers.in_adapter, "adapter_model.safetensors")
    add("head.safetensors", every_safetensors, readers.head)
    for name in (
        "experiment.json",
        "meta.json",
        "status.json",
        "events.jsonl",
        "probe.json",
        "labels.json",
        "origin.json",
    ):
        add(f"{name} of a run", every_json, readers.in_run, name)
    for name in (
        "snapshots/00000000.safetensors",
        "curves.safetensors",
        "weights/00000000.safetensors",
        "checkpoints/last/checkpoint.safetensors",
    ):
        add(f"{name} of a run", every_safetensors, readers.in_run, name)
    for name in ("tokens.json", "train.jsonl"):
        add(f"{name} of a set", every_json, readers.own_set, name, "pairs")
    add("tokens.json of a text", every_json, readers.own_set, "tokens.json", "text")
    add("pictures of a set", every_safetensors, readers.own_set, "pictures.safetensors", "pictures")
    return found


def _noted(guard: Callable[..., Any]) -> Callable[..., Any]:
    def called(*given: Any, **named: Any) -> Any:
        MET.add(sys._getframe(1).f_globals["__name__"])
        return guard(*given, **named)

    return called


def main(folder: Path) -> None:
    """Read every file; print the outcome of each."""
    for name in GUARDS:
        guard = getattr(reading, name)
        for module in list(sys.modules.values()):
            if getattr(module, name, None) is guard:
                setattr(module, name, _noted(guard))
    waiting = bombs(Readers(folder))
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for name, read in waiting.items():
        start = time.process_time()
        try:
            read()
            said = "read"
        except StudentError as error:
            said = "refused" if error.sentence and "\n" not in str(error) else repr(error)
        except BaseException as error:  # a panic of Rust is no Exception
            said = repr(error)[:200]
        print(json.dumps([name, said, time.process_time() - start]), flush=True)
    print(json.dumps(sorted(MET)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
