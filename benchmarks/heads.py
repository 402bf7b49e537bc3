"""All heads at a glance: from a click to 64 maps of 64 by 64 tokens on the screen, in Chromium.

The whole way counts: click, server, the script, the bytes back, the last canvas changed, and the
frame after it.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from benchmarks.paired import Spread
from benchmarks.report import Skipped, Table, Target

ROOT = Path(__file__).resolve().parent.parent
PAINTED = Target(200, " ms", at_least=False)
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60.0  # seconds
_CLICK = """(canvas, button) => new Promise((resolve) => {
    const look = () => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
        .data.reduce((sum, value, i) => (sum * 31 + value * (i + 1)) % 1000003, 0);
    const before = look();
    const begin = performance.now();
    const wait = () => requestAnimationFrame(
        () => (look() === before ? wait() : resolve(performance.now() - begin)));
    button.click();
    wait();
})"""


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Measure clicks one after the other; the first ones, that fill caches, do not count."""
    title = "8 layers of 8 heads, 64 by 64 tokens, from a click to painted"
    path = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if path is None or find_spec("playwright") is None:
        yield Skipped(title, "it needs playwright and a Chromium on the PATH.")
        return
    with _served() as url:
        taken = Spread.of(_clicks(path, url, rounds=5 if quick else 30))
    yield Table(
        title,
        ("median (range)", "target", "verdict"),
        [(taken.show(" ms", 0), str(PAINTED), PAINTED.verdict(taken.median))],
        ("Server and browser share the machine.",),
    )


def _clicks(chromium: str, url: str, *, rounds: int) -> list[float]:
    """Return milliseconds from each click to the frame after the last canvas changed."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(url)
        page.locator(".heads canvas").nth(63).wait_for()
        taken = []
        for _ in range(3 + rounds):
            button = page.get_by_role("button", name="Next").element_handle()
            taken.append(float(page.locator(".heads canvas").nth(63).evaluate(_CLICK, button)))
            page.wait_for_timeout(250)  # what the click left to do is not the next one's
        browser.close()
    return taken[3:]


@contextlib.contextmanager
def _served() -> Iterator[str]:
    """Serve ``heads_page.py`` and nothing else."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    command = [sys.executable, "-m", "streamlit", "run", "benchmarks/heads_page.py"]
    command += ["--server.port", str(port), "--server.headless", "true"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        try:
            end = time.monotonic() + PATIENCE
            while not _answers(port):
                if time.monotonic() > end:
                    raise TimeoutError(f"The server did not answer within {PATIENCE:.0f} seconds.")
                time.sleep(0.05)
            yield f"http://localhost:{port}"
        finally:
            process.kill()
            process.wait()


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://localhost:{port}/_stcore/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
