"""What a page shows, as data: sentences and their numbers, values, tables, figures, packed maps."""

import base64
import gzip
import json
import math
import os
import re
import struct
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

from pages.app.runs import run_time
from tests.pages.looking import OF_THE_FRAME
from tests.translation import ROOT

FOLDER = Path(__file__).parent / "record"
CHANGED: dict[str, str] = {
    r"positions\?(view=rotary|each control) .*described": "equal numbers: any may be the largest",
    r"numbers\?every-kind.*textposition": "words stand above or below by rounded places",
}
"""A pattern of places, as the test names them → why what stands there is another thing now."""
MAX_SHOWN = 30  # differences
TRAINED_HERE = "?every-kind"
"""In places of runs that the tests train: each processor rounds in its own way, and it adds up."""
FEW = 12
"""Numbers that are kept one by one; of more their sums are."""
NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
MACHINE = re.compile(
    r"just(?: |\u00a0)now|방금"
    r"|\d+(?: |\u00a0)?(?:min|h)(?: |\u00a0)ago|\d+(?:분|시간)(?: |\u00a0)전"
    r"|\d[\d.,]*(?: |\u00a0)?(?:ms|s|min|h|초|분|시간|GB|GiB|MiB|GFLOP/s)\b|:small\[.*?ago\]"
    r"|(?<=/s: )\d[\d.,]*|\d{4}-\d{2}-\d{2}[T ]?[\d:.]*|Intel.*|CPU .*|torch [\d.+a-z]+"
    r"|/\S*?/pytest-of-\S*?/runs/"
)
"""What differs from machine to machine: durations, memory, dates, names of parts, folders."""
BASE64 = re.compile(r"(?:data:[^,]*,)?[A-Za-z0-9+/=\s]+")
PICTURE = re.compile(r"data:image[^\"')\s]+")
SKIPPED = {"page_link", "popover", "skeleton", "empty"}
IDS = {"id", "form_id", "key", "page", "element_id", "deferred_file_id"}
IDS |= {"set_value", "raw_value", "raw_values"}  # there when a script sets a value, and run once


@cache
def _record_of(name: str) -> dict[str, Any]:
    path = FOLDER / f"{name}.json.gz"
    return json.loads(gzip.decompress(path.read_bytes())) if path.exists() else {}


def assert_as_recorded(found: list[Any], name: str, query: str) -> None:
    """Hold what a page shows against its record, or write it where TFM_WRITE_RECORD is set."""
    record = _record_of(name)
    if os.environ.get("TFM_WRITE_RECORD"):
        record[query] = found
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        (FOLDER / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    changed = [
        place
        for place in differences(record[query], found, f"{name}?{query} ")
        if not any(re.match(pattern, place) for pattern in CHANGED)
    ]
    assert not changed, "\n".join(changed[:MAX_SHOWN])


def shown_at_last(app: AppTest, name: str) -> list[Any]:
    """Return what a page shows once nothing is worked out beside it any more."""
    if name == "train":
        run_time.wait()
        app.run()
    while name == "mistakes" and app.get("progress"):  # the next run reads the answers further
        app.run()
    found: list[Any] = json.loads(json.dumps(shown(app)))
    return found


def shown(app: AppTest) -> list[Any]:
    """Return what stands on a page, in order, without the frame around it."""
    return [kept for node in _nodes(app._tree) if (kept := _kept(node)) is not None]


def _nodes(block: Any) -> Iterator[Any]:
    for child in block.children.values():
        yield child
        if hasattr(child, "children"):
            yield from _nodes(child)


def _kept(node: Any) -> Any:
    kind, proto = node.type, getattr(node, "proto", None)
    if proto is None or hasattr(node, "children") or kind in SKIPPED:
        return None
    if kind == "bidi_component":
        if proto.component_name in OF_THE_FRAME:
            return None
        data = json.loads(proto.json) if proto.HasField("json") else None
        if proto.HasField("bytes"):
            data = proto.bytes
        if proto.HasField("mixed"):
            data = [json.loads(proto.mixed.json), *sorted(proto.mixed.arrow_blobs)]
        return [f"component {proto.component_name}", sketch(data)]
    if kind in ("dataframe", "table"):
        frame = node.value
        own = {name: one for name, one in _fields(proto).items() if name != "arrow_data"}
        return [kind, *map(sketch, (list(map(str, frame.columns)), frame.to_numpy().tolist(), own))]
    fields = _fields(proto)
    if str(fields.get("label")).endswith("/s"):
        del fields["body"]
    return [kind, sketch(fields)]


def _fields(value: Any) -> Any:
    """Return a message of Streamlit as plain values."""
    if hasattr(value, "ListFields"):
        return {field.name: _fields(one) for field, one in value.ListFields()}
    return (
        value if isinstance(value, str | bytes | int | float) else [_fields(one) for one in value]
    )


def sketch(value: Any) -> Any:
    """Return a value in few words: of many numbers their count, ends, mean and weighted mean."""
    match value:
        case bytes():
            return _packed(value)
        case str() if len(value) > 400 and BASE64.fullmatch(value):
            return _packed(base64.b64decode(value.rpartition(",")[2]))
        case str() if value[:1] in ("{", "[") and (inside := _json(value)) is not None:
            return sketch(inside)
        case str():
            return _text(value)
        case bool() | None:
            return value
        case int() | float():
            return _number(value)
        case dict() if "bdata" in value and "dtype" in value:  # plotly's
            return sketch(np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"]).tolist())
        case dict():
            return {name: sketch(one) for name, one in value.items() if name not in IDS}
        case list() | tuple():
            flat = list(_flat(value))
            if len(flat) > FEW and all(isinstance(one, int | float) for one in flat):
                return _sums(flat)
            if len(value) > 3 * FEW:
                return [len(value), *map(sketch, value[: 2 * FEW]), sketch(value[-1])]
            return [sketch(one) for one in value]
    return str(type(value))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for one in values:
        if isinstance(one, list | tuple):
            yield from _flat(one)
        else:
            yield one


def _number(value: float) -> Any:
    return float(f"{value:.4g}") if math.isfinite(value) else str(value)


def _sums(values: list[float]) -> dict[str, Any]:
    numbers = np.asarray(values, float)
    known = numbers[np.isfinite(numbers)]
    if not known.size:
        return {"n": len(numbers)}
    weights = np.cos(np.arange(known.size))  # so that another order gives another sum
    found = (known.min(), known.max(), known.mean(), known @ weights / known.size)
    return {"n": len(numbers), "known": int(known.size), "sums": [_number(one) for one in found]}


def _packed(data: bytes) -> Any:
    """Return what packed maps hold: a header and numbers (``components.component``), or bytes."""
    if len(data) > 8:
        (length,) = struct.unpack_from("<I", data)
        if 0 < length < len(data) and data[4:5] == b"{":
            header = json.loads(data[4 : 4 + length])
            kind = "<f2" if header.get("kind") == "float16" else "<f4"
            return [sketch(header), _sums(np.frombuffer(data[4 + length :], kind).tolist())]
    return ["bytes", len(data)]


def _text(text: str) -> Any:
    """Return a sentence and its numbers apart."""
    said = MACHINE.sub("…", PICTURE.sub("data:", text.replace(f"{ROOT}/", "")))
    numbers = [one.group() for one in NUMBER.finditer(said)]
    if not numbers:
        return said
    return [NUMBER.sub("#", said), *numbers]


def differences(before: Any, now: Any, place: str = "") -> Iterator[str]:
    """Yield where two sketches differ by more than the last digit."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted({*before, *now}):
            if name not in before or name not in now:
                yield f"{place}.{name}: {'gone' if name in before else 'new'}"
            else:
                yield from differences(before[name], now[name], f"{place}.{name}")
    elif isinstance(before, list) and isinstance(now, list):
        if len(before) != len(now):
            yield f"{place}: {len(before)} → {len(now)} parts"
        for i, (one, other) in enumerate(zip(before, now, strict=False)):
            yield from differences(one, other, f"{place}[{i}]")
    elif not _is_alike(before, now, place):
        yield f"{place}: {str(before)[:80]!r} → {str(now)[:80]!r}"


def _is_alike(before: Any, now: Any, place: str) -> bool:
    if isinstance(before, bool) or isinstance(now, bool) or before is None:
        return before is now
    if before == now:
        return True
    numbers = [_value(one) for one in (before, now)]
    if None in numbers:
        return before == now
    one, other = numbers
    digits = [_last_digit(text) for text in (before, now) if isinstance(text, str)]
    share, least = (1e-2, 5e-4) if TRAINED_HERE in place else (3e-3, 1e-4)
    return abs(one - other) <= max(share * max(abs(one), abs(other)), least, *digits)


def _value(value: Any) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str) and NUMBER.fullmatch(value):
        return float(value.replace(",", "").replace("−", "-"))
    return None


def _last_digit(text: str) -> float:
    digits = text.partition(".")[2].partition("e")[0]
    return 1.01 * 10.0 ** -len(digits) if digits else 0.0
