"""Forged uploads: configurations and pictures that are none, or almost; each is taken or refused.

What is taken is drawn by every page that reads it: a configuration by Train, Build, Parameters and
the walk, a picture by the model that it is shown to.
"""

from __future__ import annotations

import io
import json
import random
import struct
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from streamlit.testing.v1 import AppTest

from benchmarks.attacks import _garbling
from benchmarks.attacks._pages import TRIED, Tally, app_on
from benchmarks.report import Table
from pages.ui.navigation.page_table import PAGES
from tests.pages.opening import opened_at
from tfm_core.config import ConfigError, from_json, to_json
from tfm_core.presets import PRESETS

COUNT, QUICK = 1_000, 40
FORMATS = ("PNG", "JPEG", "WEBP", "BMP")
SIZES = ((1, 1), (28, 28), (3, 500), (97, 61))
READERS = ("build", "parameters", "walk", "masks")
"""Pages that draw a configuration that was taken, one for each in turn."""


def tables(*, quick: bool) -> Iterator[Table]:
    """Upload as many configurations as pictures."""
    count = (QUICK if quick else COUNT) // 2
    rows, notes = [], ["Examples by hypothesis, the same ones every time."]
    with tempfile.TemporaryDirectory() as place, app_on(Path(place)):
        for name, attack in (("configurations", configurations), ("pictures", pictures)):
            tally, outcomes = Tally(), Counter[str]()
            attack(tally, outcomes, count=count)
            said = ", ".join(f"{n:,} {words}" for words, n in outcomes.most_common())
            rows.append([name, f"{tally.attacks:,}", said, str(len(tally.broken))])
            notes += [f"Fell: {one}." for one in tally.broken[:20]]
    yield Table("Forged uploads", ["what", "tried", "of these", "fell"], rows, notes)


def configurations(tally: Tally, outcomes: Counter[str], *, count: int) -> None:
    """Upload garbled experiments on the Train page, and open a page that reads what is taken."""
    names = sorted(PRESETS)

    @settings(TRIED, max_examples=count)
    @given(st.sampled_from(names), st.integers(0, 10**9))
    def one(name: str, seed: int) -> None:
        content = garbled_json(to_json(PRESETS[name].experiment), random.Random(seed))
        tally.attacks += 1
        what = f"configuration {name} {seed}"
        app = opened_at(PAGES["train"].file)
        upload = app.file_uploader(key="transfer-file")
        app = upload.set_value(("experiment.json", content, "application/json")).run()
        tally.look(f"{what} train", app)
        try:
            experiment = from_json(content)
        except ConfigError:
            outcomes["refused in sentences"] += 1
            if not _sentences(app):
                tally.broken.append(f"{what}: refused without a word")
            return
        outcomes["taken"] += 1
        page = PAGES[READERS[tally.attacks % len(READERS)]]
        tally.look(f"{what} {page.name}", opened_at(page.file, draft=experiment))

    one()


def pictures(tally: Tally, outcomes: Counter[str], *, count: int) -> None:
    """Upload garbled pictures where a run of digits is shown one's own."""
    query = {"run": "recorded-digits", "example": "own"}

    @settings(TRIED, max_examples=count)
    @given(st.sampled_from(FORMATS), st.sampled_from(SIZES), st.integers(0, 10**9))
    def one(form: str, size: tuple[int, int], seed: int) -> None:
        content = garbled_picture(form, size, random.Random(seed))
        tally.attacks += 1
        app = opened_at(PAGES["attention"].file, **query)
        upload = app.file_uploader(key="attention-upload")
        app = upload.set_value((f"picture.{form.lower()}", content, "image/png")).run()
        tally.look(f"picture {form} {size} {seed}", app)
        outcomes["refused in a sentence" if app.error else "looked at"] += 1

    one()


def garbled_json(text: str, rng: random.Random) -> bytes:
    """Return an experiment's JSON with something in it that should not be."""
    choice = rng.random()
    if choice < 0.1:
        return text.encode()[: rng.randrange(len(text))]
    if choice < 0.2:
        content = bytearray(text.encode())
        for _ in range(rng.choice((1, 5))):
            content[rng.randrange(len(content))] = rng.randrange(256)
        return bytes(content)
    if choice < 0.25:
        keys = json.dumps({f"{'k' * 9}{n}": n for n in range(rng.choice((10, 30_000)))})
        return rng.choice((keys, "[" * 50_000, "1" * 5_000, '"\\ud800"', "", "\ufeff{}")).encode()
    values = json.loads(text)
    for _ in range(rng.choice((1, 1, 3))):
        _garbling.change(values, rng)
    return _garbling.written(values).encode()


def garbled_picture(form: str, size: tuple[int, int], rng: random.Random) -> bytes:
    """Return the file of a picture, of noise and with something in it that should not be."""
    if rng.random() < 0.1:
        return _strange_picture(rng)
    mode = rng.choice(("L", "RGB")) if form in {"JPEG", "BMP"} else rng.choice(("L", "RGB", "RGBA"))
    image = Image.frombytes(mode, size, rng.randbytes(size[0] * size[1] * len(mode)))
    file = io.BytesIO()
    image.save(file, form)
    content = bytearray(file.getvalue())
    choice = rng.random()
    if choice < 0.2:
        return bytes(content[: rng.randrange(len(content))])
    if choice < 0.8:
        for _ in range(rng.choice((1, 3, 20))):
            content[rng.randrange(min(len(content), rng.choice((64, 10**9))))] = rng.randrange(256)
    return bytes(content)


def _strange_picture(rng: random.Random) -> bytes:
    """Return no picture, or one that says it is far larger than its file."""
    side = rng.choice((0, 20_000, 2**31 - 1))
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    chunk = b"IHDR" + head
    png = (
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    )
    return rng.choice((b"", b"<svg onload='alert(1)'/>", b"PK\x03\x04", rng.randbytes(999), png))


def _sentences(app: AppTest) -> list[str]:
    kinds = ("caption", "error", "markdown", "warning")
    said = [str(one.value) for kind in kinds for one in app.get(kind)]
    return [words for words in said if "was not loaded" in words]
