"""Zips that are no run, or that mean harm: each is refused in a sentence, and nothing is left."""

import io
import json
import pickle
import stat
import struct
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
from safetensors.numpy import load, save

import tfm_core
from tests.export.exported import members, packed
from tests.runs.waiting import tiny
from tfm_core.export import layout
from tfm_core.export.archive import Refused
from tfm_core.export.bundle import bundle
from tfm_core.export.importer import import_run
from tfm_core.runs.process.execute import execute
from tfm_core.runs.queue.limits import LimitReached, Limits
from tfm_core.runs.store import RunStore

Parts = dict[str, bytes]


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Parts:
    store = RunStore(tmp_path_factory.mktemp("here"), recorded=None)
    run = store.create(tiny())
    execute(run)
    return members(bundle(run))


def refused(content: bytes, store: RunStore, match: str, **settings) -> None:
    with pytest.raises(Refused, match=match):
        import_run(io.BytesIO(content), store, **settings)
    left = [path.name for path in store.root.iterdir()] if store.root.exists() else []
    assert left == []


def test_as_many_files_as_a_zip_may_hold_are_taken(good, store):
    more = {f"extra/{n}": b"" for n in range(1_000 - len(good))}
    assert import_run(io.BytesIO(packed(good | more)), store).problem is None


def test_a_zip_packed_again_with_its_folder_is_taken_too(good, store):
    again = packed({f"my run/{name}": content for name, content in good.items()})
    assert import_run(io.BytesIO(again), store).has_checkpoint


def with_facts(parts: Parts, **values: object) -> Parts:
    facts = json.loads(parts[layout.FACTS]) | values
    return parts | {layout.FACTS: json.dumps(facts).encode()}


def with_weights(parts: Parts, change: Callable[[dict], object], file=layout.WEIGHTS) -> Parts:
    tensors = load(parts[file])
    metadata = header(parts[file]).get("__metadata__")
    change(tensors)
    return parts | {file: save(tensors, metadata)}


def header(content: bytes) -> dict:
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])


def _first(tensors):
    return min(tensors)


def _broken(value):
    def change(tensors):
        tensors[_first(tensors)] = tensors[_first(tensors)] * np.float32(value)

    return change


def _reshaped(tensors):
    tensors[_first(tensors)] = np.zeros((3, 5), np.float32)


def _halved(tensors):
    tensors[_first(tensors)] = tensors[_first(tensors)].astype(np.float16)


def _renamed(tensors):
    tensors["stranger"] = tensors.pop(_first(tensors))


def _without_a_moment(tensors):
    tensors.pop(_first(tensors))


def _experiment(parts: Parts, **values: object) -> Parts:
    return parts | {layout.EXPERIMENT: json.dumps(json.loads(parts[layout.EXPERIMENT]) | values)}


CONTENTS = {
    "no experiment": (lambda p: {"a.txt": b"hello"}, "has no experiment.json"),
    "no facts": (lambda p: {layout.EXPERIMENT: p[layout.EXPERIMENT]}, "has no run.json"),
    "facts are no JSON": (
        lambda p: p | {layout.FACTS: b"\xff{"},
        "run.json is not JSON",
    ),
    "facts are a list": (lambda p: p | {layout.FACTS: b"[1]"}, "is not a JSON object"),
    "deep JSON": (lambda p: p | {layout.FACTS: b"[" * 90_000}, "is not JSON"),
    "a newer form": (
        lambda p: with_facts(p, format=99, versions={"tfm_core": "9.0"}),
        r"newer app \(9\.0; this is",
    ),
    "settings of a newer version": (
        lambda p: _experiment(with_facts(p, versions={"tfm_core": "9.0"}), hologram=1),
        rf"from version 9\.0; some of its settings are unknown in {tfm_core.__version__}",
    ),
    "no form": (lambda p: with_facts(p, format="one"), "no format number"),
    "no experiment in it": (lambda p: _experiment(p, model=3), "is not valid"),
    "steps beyond the end": (lambda p: with_facts(p, step=8), "value of “step”"),
    "a name of two lines": (lambda p: with_facts(p, name="a\nb"), "value of “name”"),
    "infinite seconds": (lambda p: with_facts(p, seconds=float("inf")), "value of “seconds”"),
    "a tag of two lines": (lambda p: with_facts(p, tags=["a\nb"]), "value of “tags”"),
    "an endless note": (lambda p: with_facts(p, note="x" * 10_000), "value of “note”"),
    "a group that is a list": (lambda p: with_facts(p, group=[1]), "value of “group”"),
    "a set of two lines": (lambda p: with_facts(p, data="a\nb"), "value of “data”"),
    "weights are a pickle": (
        lambda p: p | {layout.WEIGHTS: pickle.dumps({"a": 1})},
        r"weights\.safetensors is not a safetensors file",
    ),
    "weights are cut off": (
        lambda p: p | {layout.WEIGHTS: p[layout.WEIGHTS][:-9]},
        "is not a safetensors file",
    ),
    "weights say a huge head": (
        lambda p: p | {layout.WEIGHTS: struct.pack("<Q", 2**60) + b"{}"},
        "is not a safetensors file",
    ),
    "weights of another name": (lambda p: with_weights(p, _renamed), "belongs to another model"),
    "weights of another shape": (lambda p: with_weights(p, _reshaped), r"has the shape \(3, 5\)"),
    "weights in half precision": (lambda p: with_weights(p, _halved), "is float16"),
    "weights that are NaN": (lambda p: with_weights(p, _broken(np.nan)), "infinite or NaN"),
    "weights of a later step": (
        lambda p: with_facts(p, step=6),
        "is from step 7, but the run ended",
    ),
    "an optimiser in part": (
        lambda p: with_weights(p, _without_a_moment, layout.OPTIMISER),
        "only a part of the optimiser",
    ),
    "an optimiser of another": (
        lambda p: with_weights(p, _renamed, layout.OPTIMISER),
        "does not fit this optimiser",
    ),
    "a snapshot of another name": (
        lambda p: p | {f"{layout.SNAPSHOTS}x.safetensors": b""},
        "does not belong to a run",
    ),
    "a snapshot that is none": (
        lambda p: p | {f"{layout.SNAPSHOTS}00000001.safetensors": b"12345678"},
        "This zip is damaged",
    ),
    "examples of another task": (
        lambda p: p | {layout.PROBE: b'{"kind": "image", "items": [{"label": 3}]}'},
        "This zip is damaged",
    ),
    "a file of PyTorch": (lambda p: p | {"extra/weights.PT": b"x"}, "could run code"),
    "a path upwards": (lambda p: p | {"../../evil.txt": b"x"}, "unsafe file name"),
    "a path upwards inside": (lambda p: p | {"run/../../evil": b"x"}, "unsafe file name"),
    "a path of Windows": (lambda p: p | {"a\\..\\evil": b"x"}, "unsafe file name"),
    "a name that cannot be seen": (
        lambda p: p | {"a\u202egpj.py": b"x"},
        "unsafe file name",
    ),
    "capitals only": (lambda p: p | {"MODEL.PY": b"x"}, "differ only in case"),
    "a folder that is a file": (lambda p: p | {"run": b"x"}, "lies inside another file"),
    "a bomb": (lambda p: p | {"run/zeros": bytes(30_000_000)}, "times its size"),
    "too many files": (
        lambda p: p | {f"extra/{n}": b"" for n in range(1_001 - len(p))},
        "more files than a run",
    ),
}


@pytest.mark.core(12)
@pytest.mark.parametrize("name", CONTENTS)
def test_what_is_no_run_is_refused(name, good, store):
    change, match = CONTENTS[name]
    refused(packed(change(good)), store, match)


def _entry(name: str, *, mode: int = 0o644, **fields: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def added(parts: Parts, info: zipfile.ZipInfo, content: bytes) -> bytes:
    target = io.BytesIO(packed(parts))
    with zipfile.ZipFile(target, "a") as file:
        file.writestr(info, content)
    return target.getvalue()


def test_links_and_devices_are_refused(good, store):
    for kind in [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR]:
        content = added(good, _entry("run/link", mode=kind | 0o777), b"/etc/passwd")
        refused(content, store, "is a link or a device")


def test_a_name_that_windows_refuses_is_refused(good, store):
    for name in [
        "CON",
        "run/nul.json",
        "aux ",
        "run/com1",
        "lpt9.txt/a",
        "PRN .x",
        "a./b",
        "run/a ",
        "COM²",
        "/etc/evil",
        "C:/evil",
    ]:
        refused(added(good, _entry(name), b"x"), store, "unsafe file name")


def test_a_name_that_only_begins_like_a_device_is_taken(good, store):
    for name in ["run/console.txt", "com10", "nullable", "auxiliary.md"]:
        assert import_run(io.BytesIO(added(good, _entry(name), b"x")), store).problem is None


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_is_there_twice_is_refused(good, store):
    refused(added(good, _entry(layout.EXPERIMENT), b"{}"), store, "appears twice")


def test_another_way_of_packing_is_refused(good, store):
    info = _entry("a", compress_type=zipfile.ZIP_LZMA)
    refused(added(good, info, b"x" * 99), store, "unsupported compression")


def test_an_encrypted_file_is_refused(good, store):
    content = bytearray(packed(good))
    at = content.rindex(b"PK\x01\x02")
    content[at + 8] |= 1
    refused(bytes(content), store, "is encrypted")


def test_a_size_that_lies_is_refused(good, store):
    content = bytearray(packed(good | {"zz": b""}))
    at = content.index(b"PK\x01\x02")  # experiment.json says less than it is
    content[at + 24 : at + 28] = struct.pack("<I", 10)
    with pytest.raises(Refused):
        import_run(io.BytesIO(bytes(content)), store)


def test_more_than_may_be_unpacked_is_refused_before_it_is(good, store):
    refused(packed(good), store, "This zip unpacks to", most=10_000)


def test_what_is_no_zip_is_refused(store):
    for content in [
        b"",
        b"PK",
        b"hello" * 99,
        b"PK\x05\x06" + bytes(18),
        b"PK\x05\x06" + b"\xff" * 18,
    ]:
        refused(content, store, "zip")


def test_a_zip_for_more_than_four_gigabytes_is_refused(good, store):
    content = packed(good)
    refused(content[:-22] + b"PK\x06\x07" + bytes(16) + content[-22:], store, "above 4 GB")


def test_a_zip_that_was_cut_off_is_refused(good, store):
    for cut in [1, 100, 5_000]:
        refused(packed(good)[:-cut], store, "zip")


def test_the_limits_of_the_host_hold(good, store):
    for limits in (Limits(max_steps=3), Limits(max_parameters=5), Limits(only_shows=True)):
        with pytest.raises(LimitReached):
            import_run(io.BytesIO(packed(good)), store, limits=limits)
    assert not store.root.exists()


def test_events_that_are_none_are_left_out(good, store):
    lines = good[layout.EVENTS] + b'{"event": "step", "step": "x", "evil": 1}\nnonsense\n\xff\n'
    run = import_run(io.BytesIO(packed(good | {layout.EVENTS: lines})), store)
    text = (run.folder / "events.jsonl").read_text(encoding="utf-8")
    assert "evil" not in text
    assert "nonsense" not in text
    assert len(run.curves().steps) == 7


def test_events_beyond_the_run_are_refused(good, store):
    lines = good[layout.EVENTS] + b'{"event": "step", "step": 8, "loss": 1.0}\n'
    refused(packed(good | {layout.EVENTS: lines}), store, "go up to step 8, but the run to 7")


def test_more_events_than_a_run_makes_are_refused(good, store):
    for event in ["step", "measured", "resumed"]:
        losses = np.random.default_rng(0).random(20_000)  # lines that differ: a zip packs no bomb
        more = [json.dumps({"event": event, "step": 7, "loss": loss}) for loss in losses.tolist()]
        lines = good[layout.EVENTS] + "\n".join(more).encode() + b"\n"
        refused(packed(good | {layout.EVENTS: lines}), store, "more events than a run of 7")


def test_what_was_done_again_after_breaks_is_taken(good, store):
    again = b'{"event": "resumed", "step": 0}\n' + good[layout.EVENTS]
    run = import_run(
        io.BytesIO(packed(good | {layout.EVENTS: good[layout.EVENTS] + 50 * again})), store
    )
    assert len(run.curves().steps) == 7


def test_only_what_a_run_has_is_written(good, store):
    extra = {"run/requests/stop": b"x", "run/claims/1": b"x", "owner.json": b"{}"}
    run = import_run(io.BytesIO(packed(good | extra)), store)
    assert not list((run.folder / "requests").iterdir())
    assert not (run.folder / "claims").exists()
    assert run.meta.owner is None


def test_a_run_that_trained_when_it_was_taken_is_stopped_here(good, store):
    run = import_run(io.BytesIO(packed(with_facts(good, state="running", step=7))), store)
    assert run.status.state == "stopped"
    assert "at step 7" in run.status.reason
