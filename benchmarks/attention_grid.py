"""All heads at a glance: from a click to the painted grid of 8 by 8 heads of 64 by 64, in Chromium.

A page of one button and the head grid is served by Streamlit; a click asks for other weights, and
the browser tells when the canvases hold them and a frame was painted.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import chromium
from benchmarks.goals import target
from benchmarks.report import Figure, Skipped, Table

ROOT = Path(__file__).resolve().parents[1]
GOAL = "all heads"
PAGE = """
import numpy as np
import streamlit as st

from pages.components.head_grid import GridLook, head_grid
from tfm_core.inspect.attention.map_view import MapView

st.set_page_config(layout="wide")
st.session_state.setdefault("n", 0)
if st.button("Other weights"):
    st.session_state.n += 1
n = st.session_state.n
weights = np.random.default_rng(n).dirichlet(np.full(64, 0.1), (8, 8, 64)).astype(np.float16)
tokens = [f"token {i}" for i in range(64)]
head_grid(
    MapView(weights, tokens, tokens),
    GridLook(chosen=(0, n % 8), theme="light"),
    on_pick=lambda layer, head: None,
    key="grid",
)
"""
CLICK = """
() => new Promise((done) => {
  const find = (node, name) => {
    if (node.querySelector?.(name)) return node.querySelector(name);
    for (const child of node.querySelectorAll("*")) {
      const found = child.shadowRoot && find(child.shadowRoot, name);
      if (found) return found;
    }
    return null;
  };
  const root = find(document, ".heads");
  const last = [...root.querySelectorAll("button canvas")].at(-1);
  const print = () => String(last.getContext("2d").getImageData(0, 0, 64, 64).data);
  const before = print();
  const start = performance.now();
  document.querySelector("[data-testid=stButton] button").click();
  const look = () => (print() === before
    ? requestAnimationFrame(look)
    : requestAnimationFrame(() => done(performance.now() - start)));
  requestAnimationFrame(look);
})
"""


def tables(*, quick: bool = False) -> list[Table | Skipped]:
    """Return the table of times from click to paint, or why there is none."""
    title = "8 by 8 heads of 64 by 64: from click to painted"
    if chromium.is_lacking():
        return [Skipped(title, chromium.LACKING)]
    times = measured(3 if quick else 15)
    middle = median(times)
    wanted = target(GOAL)
    row = [f"{middle:.0f} ms", f"{min(times):.0f} to {max(times):.0f} ms", str(wanted)]
    columns = ["median", "fastest to slowest", "target", "verdict"]
    rows = [[*row, wanted.verdict(middle)]]
    return [Table(title, columns, rows, reached={GOAL: Figure(middle)})]


def measured(rounds: int) -> list[float]:
    """Return milliseconds from click to painted frame, ``rounds`` of them, after two to warm up."""
    with tempfile.TemporaryDirectory() as folder, chromium.opened("--disable-gpu") as browser:
        port = _free_port()
        server = _serve(Path(folder), port)
        try:
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            _open(page, port)
            times = []
            for _round in range(rounds + 2):
                times.append(float(page.evaluate(CLICK)))
                page.wait_for_timeout(300)
            return times[2:]
        finally:
            server.terminate()
            server.wait(20)


def _serve(folder: Path, port: int) -> subprocess.Popen[bytes]:
    script = folder / "grid_page.py"
    script.write_text(f"import sys\n\nsys.path.insert(0, {str(ROOT)!r})\n{PAGE}", encoding="utf-8")
    command = [sys.executable, "-m", "streamlit", "run", str(script)]
    options = ["--server.port", str(port), "--server.headless", "true"]
    return subprocess.Popen(
        [*command, *options], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _open(page: Any, port: int) -> None:
    from playwright.sync_api import Error

    for _attempt in range(60):
        try:
            page.goto(f"http://localhost:{port}")
            break
        except Error:
            page.wait_for_timeout(500)
    page.locator(".heads canvas").nth(63).wait_for(timeout=60_000)
    page.wait_for_timeout(1500)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return int(free.getsockname()[1])
