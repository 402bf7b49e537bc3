"""The first screens: what moves, and how smoothly.

Everything is measured in the browser by its own clock, in a session that is new to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import chromium
from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Table
from benchmarks.served import Served
from benchmarks.timing import TimeRange
from tfm_core.presets import PRESETS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RUN = "recorded-korean"
HOME, TRAIN, ATTENTION = "", f"train?run={RUN}", f"attention?run={RUN}"
BOOK = "walk?walk-source=book"
SWITCHES = 40
# `frames` are those of the browser's frames in which a canvas of the page was drawn on.
_WATCH = """(() => {
    const seen = { shifts: [], frames: [], moved: null };
    Object.assign(window, { seen });
    new PerformanceObserver((list) => {
        for (const one of list.getEntries()) seen.shifts.push([one.startTime, one.value]);
    }).observe({ type: 'layout-shift', buffered: true });
    let frame = null;
    const ask = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (act) => ask((now) => { frame = now; act(now); });
    const pen = CanvasRenderingContext2D.prototype;
    for (const name of ['drawImage', 'putImageData', 'fillRect']) {
        const draw = pen[name];
        pen[name] = function (...given) {
            if (this.canvas.isConnected && seen.frames.at(-1) !== frame) seen.frames.push(frame);
            return draw.apply(this, given);
        };
    }
    const first = new WeakMap();
    const look = () => {
        if (!document.body) return;
        const slider = deep('.stage input[type=range]')[0];
        if (!slider || slider.disabled) return;
        if (!first.has(slider)) first.set(slider, slider.value);
        else if (first.get(slider) !== slider.value) seen.moved ??= performance.now();
        if (seen.moved !== null) clearInterval(looking);
    };
    const looking = setInterval(look, 20);
})()"""
_IS_ON_STAGE = """() => deep('.stage input[type=range]').some((slider) => !slider.disabled)"""
_SCRUB = """async (seconds) => {
    const slider = deep('.stage input[type=range]')[0];
    const before = seen.frames.length;
    const begin = performance.now();
    await new Promise((done) => {
        const turn = () => {
            const share = (performance.now() - begin) / (1000 * seconds);
            if (share >= 1) { done(); return; }
            slider.value = slider.max * (0.5 - 0.5 * Math.cos(6 * Math.PI * share));
            slider.dispatchEvent(new Event('input', { bubbles: true }));
            setTimeout(turn, 4);
        };
        turn();
    });
    return seen.frames.slice(before);
}"""
# The picture of a model: at every frame the pointer hovers, or drags it, or the wheel zooms.
_HANDLE = """async ([act, seconds]) => {
    const canvas = deep('canvas.model')[0];
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const fire = (kind, x, y, more = {}) => canvas.dispatchEvent(
        new (kind === 'wheel' ? WheelEvent : PointerEvent)(kind, { bubbles: true, cancelable: true,
            clientX: left + width * x, clientY: top + height * y, pointerId: 1,
            pointerType: 'mouse', ...more }));
    canvas.setPointerCapture = () => {}; // there is no real pointer
    const acts = {
        hover: (at) => fire('pointermove', 0.5 - 0.4 * Math.cos(at), 0.5 - 0.4 * Math.cos(6 * at)),
        pan: (at) => fire('pointermove', 0.5 + 0.1 * Math.sin(3 * at), 0.5 + 0.1 * Math.cos(at)),
        zoom: (at) => fire('wheel', 0.3, 0.4, { ctrlKey: true, deltaY: -30 * Math.sin(2 * at) }),
    };
    const frames = [];
    if (act === 'pan') fire('pointerdown', 0.5, 0.5);
    const begin = performance.now();
    await new Promise((done) => {
        const turn = (now) => {
            frames.push(now);
            const at = (now - begin) / 1000;
            if (at >= seconds) { done(); return; }
            acts[act](at);
            requestAnimationFrame(turn);
        };
        requestAnimationFrame(turn);
    });
    fire('pointercancel', 0.5, 0.5);
    return frames;
}"""
# From the press until the frame after the one that draws: by then it is on the screen.
_PRESS = """(number) => new Promise((done) => {
    const heads = deep('.stage button.head');
    const begin = performance.now();
    heads[number % heads.length].click();
    const before = seen.frames.length;
    const look = () => {
        if (seen.frames.length === before) { requestAnimationFrame(look); return; }
        requestAnimationFrame(() => done(performance.now() - begin));
    };
    requestAnimationFrame(look);
})"""


def tables(served: Served, browser: Browser, *, log: Path, quick: bool) -> Iterator[Table]:
    """Measure movement, frames, clicks, shifts, and presets switched in a hurry.

    log: what the server writes.
    """
    rounds = 2 if quick else 5
    yield _movement(served, browser, rounds)
    yield _smoothness(served, browser, presses=10 if quick else 40, seconds=2 if quick else 5)
    yield _picture(served, browser, seconds=2 if quick else 5)
    yield _shifts(served, browser)
    yield _storm(served, browser, log)


def _movement(served: Served, browser: Browser, rounds: int) -> Table:
    taken = []
    for _ in range(rounds):
        page = _open(browser, f"{served.url}/{HOME}")
        page.wait_for_function("() => seen.moved !== null")
        taken.append(page.evaluate(f"() => (seen.moved - {_PAINTED}) / 1000"))
        page.context.close()
    spread = TimeRange.of(taken)
    return Table(
        "Home moves without a click",
        ["", "seconds", "target"],
        [["from the first paint to the first movement", spread.show(),
          goal_cell("Home moves", spread.median)]],
        [f"{rounds} new sessions; the first paint is the browser's first-contentful-paint."],
        {"Home moves": Figure(spread.median)},
    )  # fmt: skip


def _smoothness(served: Served, browser: Browser, *, presses: int, seconds: float) -> Table:
    page = _open(browser, f"{served.url}/{TRAIN}")
    page.wait_for_function(_IS_ON_STAGE)
    page.wait_for_timeout(1000)
    drawn = np.diff(page.evaluate(_SCRUB, seconds)) / 1000
    rate = 1 / drawn.mean()
    taken = []
    for number in range(presses):
        taken.append(page.evaluate(_PRESS, number))
        page.keyboard.press("Escape")
    page.context.close()
    slowest = float(np.percentile(taken, 95))
    return Table(
        "The stage under the hand",
        ["", "measured", "target"],
        [
            ["frames drawn while scrubbing", f"{rate:.0f} a second, the longest gap "
             f"{1000 * drawn.max():.0f} ms", goal_cell("stage: frames", rate)],
            ["a press on a head, until its map is on the screen, p95", f"{slowest:.0f} ms",
             goal_cell("stage: a head", slowest)],
        ],
        [f"{seconds:g} seconds of scrubbing, {presses} presses.",
         "The browser draws without a GPU; `attention_grid` measures the page of Attention."],
        {"stage: frames": Figure(rate), "stage: a head": Figure(slowest)},
    )  # fmt: skip


def _picture(served: Served, browser: Browser, *, seconds: float) -> Table:
    page = _open(browser, f"{served.url}/{BOOK}")
    page.wait_for_function("() => deep('.picture')[0]?.picture?.camera")
    page.wait_for_timeout(1000)
    rows, rates = [], []
    for name, levels in {"the whole model": 0, "some of its blocks": 3}.items():
        for act in ("hover", "pan", "zoom"):
            page.locator(".picture [data-name=all]").click()
            page.wait_for_timeout(1000)
            for _ in range(levels):
                page.locator(".picture [data-name=larger]").click()
            drawn = np.diff(page.evaluate(_HANDLE, [act, seconds])) / 1000
            rates.append(1 / drawn.mean())
            rows.append([name, act, f"{rates[-1]:.0f}", f"{1000 * drawn.max():.0f} ms"])
    page.context.close()
    slowest = min(rates)
    return Table(
        "The picture of a model under the hand: 6 + 6 blocks of 8 heads, d_model 512",
        ["in sight", "act", "frames a second", "the longest gap"],
        rows,
        [f"{seconds:g} seconds each, in a browser that draws without a GPU. The slowest: "
         f"{slowest:.0f}, {goal_cell('picture: frames', slowest)}."],
        {"picture: frames": Figure(slowest)},
    )  # fmt: skip


def _shifts(served: Served, browser: Browser) -> Table:
    rows, reached = [], {}
    for path in (HOME, TRAIN, ATTENTION):
        page = _open(browser, f"{served.url}/{path}")
        page.wait_for_timeout(5000)
        late = page.evaluate(
            f"() => seen.shifts.filter(([when]) => when > {_PAINTED} + 1000).reduce("
            "(sum, [, value]) => sum + value, 0)"
        )
        rest = page.evaluate(
            "ready => seen.shifts.filter(([when]) => when > ready + 1000)"
            ".reduce((sum, [, value]) => sum + value, 0)",
            page.evaluate("() => seen.ready"),
        )
        page.context.close()
        goal = f"shift: {_name(path)}"
        reached[goal] = Figure(rest)
        rows.append([_name(path), f"{late:.3f}", f"{rest:.3f}", goal_cell(goal, rest)])
    return Table(
        "Layout shift",
        ["", "from 1 s after the first paint", "from 1 s after the page is drawn", "target"],
        rows,
        ["The first paint of a new session is Streamlit's empty page; 5 seconds are watched."],
        reached,
    )


def _storm(served: Served, browser: Browser, log: Path) -> Table:
    before = log.stat().st_size
    page = _open(browser, f"{served.url}/train")
    box = page.get_by_role("combobox", name="Preset")
    labels = [preset.label for preset in PRESETS.values()]
    for number in range(SWITCHES):
        label = labels[(7 * number) % len(labels)]
        box.click()
        box.fill(label)  # of a long list only what is in sight is there
        page.get_by_role("option", name=label, exact=True).first.click()
    page.wait_for_timeout(3000)
    page.locator("[data-test-script-state=notRunning]").first.wait_for()
    shown = page.locator("[data-testid=stException]").count()
    page.context.close()
    with log.open("rb") as written:
        written.seek(before)
        n = written.read().count(b"Traceback (most recent call last)") + shown
    return Table(
        "Presets switched in a hurry",
        ["", "errors in the log and on the page", "target"],
        [[f"{SWITCHES} switches, none awaited", str(n), goal_cell("errors in a hurry", n)]],
        reached={"errors in a hurry": Figure(n)},
    )


_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def _open(browser: Browser, url: str) -> Page:
    """Open a page in a new session; ``seen.ready`` is when its script had ended."""
    page = chromium.visit(browser, url, script=_WATCH)
    page.evaluate("() => { seen.ready = performance.now(); }")
    return page


def _name(path: str) -> str:
    return (path.partition("?")[0] or "home").capitalize()
