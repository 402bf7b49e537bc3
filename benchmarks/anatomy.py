"""Home and the pages on the model: from a person's act to the screen, in a real Chromium.

The browser itself takes the time: from the key or the pointer going down to the first frame that
holds what the act asked for. The server's part is from the message to the end of its script.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import chromium
from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Skipped, Table
from benchmarks.served import serve
from benchmarks.timing import TimeRange
from tfm_core.facts.architectures import ARCHITECTURES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, WebSocket

SIZES = ("gpt2-xl", "vit-h")
WATCH = """
for (const kind of ['pointerdown', 'keydown']) {
  addEventListener(kind, () => { window.began = performance.now(); }, true);
}
window.all = (selector, root = document) => [
  ...root.querySelectorAll(selector),
  ...[...root.querySelectorAll('*')].filter((node) => node.shadowRoot)
    .flatMap((node) => window.all(selector, node.shadowRoot)),
];
window.says = (selector, words) => window.all(selector).some((n) => n.textContent.includes(words));
window.plot = (key) => document.querySelector(`[class*='st-key-${key}'] .live-figure`)?._fullData;
"""
MEASURE = """
import resource, sys, time
import torch
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.parameter_table import parameter_table
known = ARCHITECTURES[sys.argv[1]]
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
parameter_table(known.model, known.shape).folded
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""

Act = Callable[["Page"], None]


@dataclass(frozen=True, slots=True)
class Case:
    """Acts on a page in turn, each with what JavaScript must find to be true after it.

    name: that of its goal.
    """

    name: str
    path: str
    acts: tuple[tuple[Act, str], ...]


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Measure every page on the model, then the tables of the largest models alone.

    Raises RuntimeError at the end where a change could not be made on a page.
    """
    lost: list[str] = []
    if chromium.is_lacking():
        yield Skipped("Pages on the model", chromium.LACKING)
    else:
        of_pages = _pages(2 if quick else 8)
        yield of_pages
        lost = [case.name for case in CASES if case.name not in of_pages.reached]
    yield _alone(1 if quick else 5)
    if lost:
        raise RuntimeError(f"These changes could not be made: {'; '.join(lost)}.")


def _pages(rounds: int) -> Table:
    from playwright.sync_api import Error

    rows, reached = [], {}
    with (
        tempfile.TemporaryDirectory() as folder,
        chromium.opened() as browser,
        serve(Path(folder)) as served,
    ):
        for case in CASES:
            try:
                screen, server = _measured(browser, f"{served.url}/{case.path}", case, rounds)
            except Error as error:  # the page changed; the other figures are worth having
                rows.append([case.name, "", "", f"not measured: {_first_line(error)}"])
                continue
            all_of_them = TimeRange.of(screen)
            reached[case.name] = Figure(all_of_them.median)
            rows.append(
                [case.name, all_of_them.show(digits=0), TimeRange.of(server).show(digits=0),
                 goal_cell(case.name, all_of_them.median)]
            )  # fmt: skip
    return Table(
        "A change on a page, until it is on the screen",
        ["change", "ms", "server's part, ms", "target"],
        rows,
        [f"{rounds} rounds; the first of each is left out, for it imports and lays out anew."],
        reached,
    )


@dataclass
class Server:
    """Listens to a page's connection: milliseconds from a message to the end of its script."""

    taken: list[float] = field(default_factory=list)
    _sent: float | None = None

    def listen(self, socket: WebSocket) -> None:
        """Note what goes over a connection."""
        socket.on("framesent", self._note_sent)
        socket.on("framereceived", self._note_received)

    def _note_sent(self, frame: bytes | str) -> None:
        from streamlit.proto.BackMsg_pb2 import BackMsg

        if isinstance(frame, bytes) and BackMsg.FromString(frame).WhichOneof("type"):
            self._sent = time.perf_counter()

    def _note_received(self, frame: bytes | str) -> None:
        from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

        if self._sent is None or not isinstance(frame, bytes):
            return
        if ForwardMsg.FromString(frame).WhichOneof("type") == "script_finished":
            self.taken.append(1000 * (time.perf_counter() - self._sent))
            self._sent = None


def _measured(
    browser: Browser, url: str, case: Case, rounds: int
) -> tuple[list[float], list[float]]:
    """Return milliseconds to the screen, and those of the server, of all acts of all rounds."""
    with browser.new_context(viewport={"width": 1440, "height": 900}) as context:
        return _measured_on(context.new_page(), url, case, rounds)


def _measured_on(page: Page, url: str, case: Case, rounds: int) -> tuple[list[float], list[float]]:
    page.set_default_timeout(60_000)
    page.add_init_script(WATCH)
    server = Server()
    page.on("websocket", server.listen)
    page.goto(url)
    page.locator("[data-test-script-state=notRunning]").first.wait_for()
    page.wait_for_timeout(1500)
    taken: list[float] = []
    known = 0
    for number in range(rounds + 1):
        for act, condition in case.acts:
            act(page)
            found = page.wait_for_function(f"() => ({condition}) && performance.now() - began")
            page.wait_for_timeout(400)
            if number:
                taken.append(float(found.json_value()))
            else:
                known = len(server.taken)
    return taken, server.taken[known:]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _alone(rounds: int) -> Table:
    rows, reached = [], {}
    for name in SIZES:
        found = []
        for _ in range(rounds):
            command = [sys.executable, "-c", MEASURE, name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append([float(part) for part in done.stdout.split()])
        least = 1000 * min(seconds for seconds, _kilobytes in found)
        most = max(kilobytes for _seconds, kilobytes in found) / 1000
        made, held = f"table of {name}", f"memory of {name}"
        reached |= {made: Figure(least), held: Figure(most)}
        rows.append(
            [ARCHITECTURES[name].label, f"{least:.0f}", goal_cell(made, least), f"{most:.1f}",
             goal_cell(held, most)]
        )  # fmt: skip
    return Table(
        "The parameter table of the largest models, in a process of its own",
        ["model", "best, ms", "target", "memory it adds, MB", "target"],
        rows,
        [f"{rounds} processes each; torch is imported before."],
        reached,
    )


def _model(label: str) -> Act:
    def act(page: Page) -> None:
        box = page.get_by_role("combobox", name="Which model")
        if not box.is_visible():
            page.get_by_role("button", name="Change").first.click()
        box.click()
        box.fill(label)  # the list is long, and only what is in sight of it is drawn
        page.get_by_role("option", name=label, exact=True).click()

    return act


def _slide(label: str, key: str) -> Act:
    return lambda page: page.get_by_role("slider", name=label).first.press(key)


def _click(selector: str) -> Act:
    return lambda page: page.locator(selector).first.click()


_SENTENCES = itertools.cycle(
    f"{article} {subject} {verb} a {adjective} {noun}"
    for adjective, article, subject, verb, noun in itertools.product(
        ("big", "small"), ("a", "the"), ("teacher", "student"), ("bought", "ate"), ("egg", "book")
    )
)
_NEW_PICTURE = "all('.picture')[0].picture.view !== seen"


def _note_picture(page: Page) -> None:
    page.evaluate("() => { window.seen = all('.picture')[0].picture.view; }")


def _type_sentence(page: Page) -> None:
    """Type a sentence that was not read before: what was read is kept."""
    _note_picture(page)
    box = page.get_by_label("Your sentence")
    box.fill(next(_SENTENCES))
    box.press("Enter")


_DOTS = itertools.count()


def _draw_dot(page: Page) -> None:
    board = page.locator(".picture .panel .board canvas")
    if not board.is_visible():
        page.get_by_role("button", name="Draw a digit").click()
    _note_picture(page)
    n = next(_DOTS)
    board.click(position={"x": 20 + 23 * n % 120, "y": 20 + 37 * n % 120})


def _train_on(key: str) -> Act:
    def act(page: Page) -> None:
        _note_picture(page)
        page.get_by_role("slider", name="Weights of step").press(key)

    return act


def _shown(count: str) -> str:
    return f"says('[data-testid=stMarkdown]', 'Shown: {count} of')"


def _drawn(total: str, label: str) -> str:
    return (f"says('.diagram g.node', '{label}') && "
            f"says('[data-testid=stMarkdown]', '{total} parameters')")  # fmt: skip


_DRAFT = "model.family=encoder-decoder&task.name=copy&model.d_model=64&model.n_heads=4"
_WAVE = "Array.from(plot('positions-wavelengths')?.[0].y ?? []).at(-1)"
_CELL = "says(\".cell[data-map=weights][data-q='5'][data-k='1']\", '{}')"
_LAST = "location.search.includes('step=1000')"
CASES = (
    Case("Home: what is learned", "", (
        (_click(".st-key-home-teaches button:has-text('Read')"),
         "all('.st-key-start-sentiment').length && !all('.st-key-start-translate').length"),
        (_click(".st-key-home-teaches button:has-text('Start here')"),
         "all('.st-key-start-translate').length"),
    )),
    Case("Build: another published model", "build?show=vit-s", (
        (_model("ViT-B/16"), _drawn("86,567,656", "768 → 3072 → 768")),
        (_model("ViT-S/16"), _drawn("22,050,664", "384 → 1536 → 384")),
    )),
    Case("Build: another published model, large", "build?show=vit-h", (
        (_model("GPT-2 XL"), _drawn("1,557,611,200", "1600 → 6400 → 1600")),
        (_model("ViT-H/14"), _drawn("632,045,800", "1280 → 5120 → 1280")),
    )),
    Case("Build: a click on a block", "build?show=vit-b", (
        (_click(".diagram g.node[aria-label*='feed-forward, GELU']"),
         "says('[data-testid=stMarkdown] code', 'feed_forward.up')"),
        (_click(".diagram g.node[aria-label*=': self-attention']"),
         "says('[data-testid=stMarkdown] code', 'attention.in_proj')"),
    )),
    Case("Parameters: another published model", "parameters?show=vit-s", (
        (_model("ViT-B/16"), _shown("86,567,656")), (_model("ViT-S/16"), _shown("22,050,664")),
    )),
    Case("Parameters: another published model, large", "parameters?show=vit-h", (
        (_model("GPT-2 XL"), _shown("1,557,611,200")), (_model("ViT-H/14"), _shown("632,045,800")),
    )),
    Case("Masks: a click on a cell", "masks?mask=none", (
        (_click(".lab .cell[data-map=mask][data-q='5'][data-k='1']"), _CELL.format("00")),
        (_click(".lab .cell[data-map=mask][data-q='5'][data-k='1']"),
         f"!({_CELL.format('00')})"),
    )),
    Case("Masks: another mask", "masks?mask=none", (
        (lambda page: page.get_by_role("radio", name="Causal", exact=True).click(),
         "says('[data-testid=stMarkdown]', '21 of 36')"),
        (lambda page: page.get_by_role("radio", name="None", exact=True).click(),
         "says('[data-testid=stMarkdown]', '36 of 36')"),
    )),
    Case("Positions: another base", "positions", (
        (_slide("Base", "ArrowLeft"),
         f"{_WAVE} < 10000"),
        (_slide("Base", "ArrowRight"),
         f"{_WAVE} > 10000"),
    )),
    Case("Walk: your own sentence", "walk?run=recorded-korean", ((_type_sentence, _NEW_PICTURE),)),
    Case("Walk: your own digit", "walk?run=recorded-digits", ((_draw_dot, _NEW_PICTURE),)),
    Case("Walk: another step of training", "walk?run=recorded-korean", (
        (_train_on("Home"), _NEW_PICTURE), (_train_on("End"), _NEW_PICTURE),
    )),
    Case("Attention: the snapshot before, and back", "attention?run=recorded-korean", (
        (_click(".heads button.back"),
         f"location.search.includes('step=') && !{_LAST} && plot('attention-map')"),
        (_click(".heads button.next"), f"{_LAST} && plot('attention-map')"),
    )),
    Case("Walk: the next step, and back", f"walk?{_DRAFT}&step=8", (
        (_click(".st-key-walk-right button"), "says('h2, h3', '9 · Mask') && plot('walk-map')"),
        (_click(".st-key-walk-left button"), "says('h2, h3', '8 · Scores') && plot('walk-map')"),
    )),
)  # fmt: skip
