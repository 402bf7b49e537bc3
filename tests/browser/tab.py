"""One tab with the app in it: what a person sees, does and waits for."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from weakref import WeakSet

from playwright.sync_api import (
    ConsoleMessage,
    Error,
    Frame,
    JSHandle,
    Locator,
    Page,
    WebSocket,
    expect,
)
from playwright.sync_api import TimeoutError as TimedOut
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tfm_core.choices.config import Experiment
from tfm_core.choices.config.codec import to_query

STEP = re.compile(r"^Step ([\d,]+) of ([\d,]+)")
LAST_STEP = (  # what plotly decoded: the figure itself still holds base64
    "Math.max(0, ...(node._fullData?.find(line => line.name === 'training')?.x ?? []))"
)
"""JavaScript for ``Tab.plotly``: the last step of the training curve, 0 before the first."""
PATIENCE = 120_000
"""How many milliseconds anything may take: who does not fail does not wait so long."""
POLL_MILLISECONDS = 100
"""Between two looks of JavaScript: looking in every frame makes the browser draw every frame."""
TRY_MILLISECONDS = 5_000
"""After how long something is tried again that a page which moves meanwhile undoes."""
EXPECTED = re.compile(
    # Who leaves a page takes its downloads away, while their button still looks for them.
    r"status of 404 .*/media/[0-9a-f]+\.json\)$"
    r"|Download Button source error - 404"
)
"""What the console may say."""
_REMEMBER_SOCKET = """{
    const remember = (Socket) => {
        const { send } = Socket.prototype;
        Socket.prototype.send = function (...said) {
            if (this.url.includes("/_stcore/stream")) window.socketOfApp = this;
            return send.apply(this, said);
        };
        return Socket;
    };
    let Socket = remember(WebSocket);
    Object.defineProperty(window, "WebSocket", {
        configurable: true, get: () => Socket, set: (other) => { Socket = remember(other); },
    });
}"""
_ASK = """async (said) => {
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    window.socketOfApp.send(new Uint8Array(said));
}"""
"""JavaScript: send a message behind all that a press has made the page send."""
_FIGURE = "[class*='st-key-{}'] .live-figure"
_KNOWN: WeakSet[Page] = WeakSet()
"""The pages that remember their connection."""
_ERROR_MARKS = "[data-testid=stException]", "text=This page could not be drawn"


def link_of(experiment: Experiment) -> str:
    """Return the path that opens the Train page with an experiment."""
    return f"train?{urlencode(to_query(experiment))}"


def await_js(where: Page | Frame, expression: str, arg: Any = None) -> JSHandle:
    """Wait until a JavaScript expression or function of ``arg`` is true; return its value."""
    # a bare expression would be compiled at each look, which the page's policy may refuse
    value = f"""(arg) => {{
        const value = ({expression});
        return typeof value === "function" ? value(arg) : value;
    }}"""
    return where.wait_for_function(value, arg=arg, polling=POLL_MILLISECONDS, timeout=PATIENCE)


class Tab:
    """A page of the browser with the app in it.

    ``drawn`` counts the script runs that the server has finished for it, ticks included;
    ``timers`` are the parts of the page that the browser has drawn again and again;
    ``problems`` are what its console and its scripts have complained of.
    """

    def __init__(self, page: Page, url: str) -> None:
        """Listen to everything that the page says; ``goto`` opens the app at ``url``."""
        self.page, self.url = page, url
        self.drawn = 0
        self.timers: set[str] = set()
        self._socket: WebSocket | None = None
        self._n_asked = 0
        self._settled: set[str] = set()
        self.problems: list[str] = []
        self.is_spoilt = False  # for whoever comes next
        self._ears = {
            "websocket": self._listen,
            "pageerror": self._note_error,
            "console": self._note_message,
        }
        for event, ear in self._ears.items():
            page.on(event, ear)
        if page not in _KNOWN:
            page.add_init_script(_REMEMBER_SOCKET)
            _KNOWN.add(page)

    def run_before_pages(self, script: str) -> None:
        """Run JavaScript before each page's own; a browser forgets it only with the tab."""
        self.page.add_init_script(script)
        self.is_spoilt = True

    def leave(self) -> None:
        """Listen no longer: the page is somebody else's from now on."""
        for event, ear in self._ears.items():
            self.page.remove_listener(event, ear)

    def goto(self, path: str) -> None:
        """Open a path of the app and wait until it is drawn."""
        self.page.goto(f"{self.url}/{path}")
        self.settle()

    def reload(self) -> None:
        """Press the browser's reload button and wait until the page is drawn again."""
        self.page.reload()
        self.settle()

    def settle(self) -> None:
        """Wait until the server has answered all that the page has asked for, and it is drawn.

        The page's own connection asks, so behind what the last action has asked for; the server
        answers once no script runs or is about to, see ``served/sitecustomize.py``.
        """
        app = self.page.get_by_test_id("stApp")
        end = time.monotonic() + PATIENCE / 1000
        is_settled = False
        while not is_settled:
            expect(app).to_have_attribute("data-test-connection-state", "CONNECTED")
            headings = self.main.get_by_role(
                "heading", include_hidden=True
            )  # beside a presented figure
            expect(headings.first).to_be_attached()  # a script has begun
            try:
                is_settled = self._ask_settled()
            except TimedOut:
                raise
            except Error:  # another page or connection has come meanwhile
                assert time.monotonic() < end
        expect(app).to_have_attribute("data-test-script-state", "notRunning")

    def _ask_settled(self) -> bool:
        self._n_asked += 1
        question, message = f"settled-{self._n_asked}", BackMsg()
        message.file_urls_request.request_id = question
        socket = self._connection
        self.page.evaluate(_ASK, list(message.SerializeToString()))
        while question not in self._settled:
            socket.wait_for_event("framereceived", timeout=PATIENCE)
        return True

    def await_js(self, expression: str, arg: Any = None) -> JSHandle:
        """Wait until a JavaScript expression or function of ``arg`` is true; return its value."""
        return await_js(self.page, expression, arg)

    @property
    def main(self) -> Locator:
        """The page without the frame around it."""
        return self.page.locator(".st-key-page")

    @property
    def strip(self) -> Locator:
        """The strip of the frame: the search and the menu."""
        return self.page.locator(".st-key-strip")

    @property
    def title(self) -> Locator:
        """The heading of the page."""
        return self.main.get_by_role("heading", level=1)

    def button(self, name: str) -> Locator:
        """Return a button of the page by its whole label."""
        return self.main.get_by_role("button", name=re.compile(rf"(^|\s){re.escape(name)}$"))

    def open_choices(self) -> Locator:
        """Open what the line above the subject leaves to choose, and return it."""
        self.main.get_by_role("button", name="Change", exact=False).first.click()
        choices = self.page.get_by_test_id("stPopoverBody")
        expect(choices).to_be_visible()
        return choices

    def close_choices(self) -> None:
        self.page.keyboard.press("Escape")
        expect(self.page.get_by_test_id("stPopoverBody")).to_be_hidden()

    def open_all_settings(self) -> None:
        """Show every setting on Train."""
        self.main.get_by_text("All settings", exact=True).click()
        expect(self.page.get_by_role("spinbutton", name="Seed", exact=True)).to_be_visible()

    def from_menu(self, name: str) -> None:
        """Press a button of the menu beside the run's title."""
        self.main.locator(".st-key-live-head").get_by_role("button", name="More").click()
        self.page.get_by_test_id("stPopoverBody").get_by_role("button", name=name).click()

    def state(self, word: str) -> Locator:
        """Return the badge of the run's state beside its title."""
        return self.main.locator(".stMarkdownBadge", has_text=word).first

    def said(self, who: str) -> Locator:
        """Return what the attention page says after Source, Truth or Model."""
        paragraph = self.main.locator("p").filter(has_text=re.compile(rf"^{who}\s"))
        return paragraph.locator("strong").first

    def go_to(self, place: str, page: str = "") -> None:
        """Go to a place by the bar at the top, and to one of its pages."""
        self.page.get_by_test_id("stTopNav").get_by_role("link", name=place).click()
        if page:
            pages = self.main.locator(".st-key-page-title")
            pages.get_by_role("link", name=page, exact=True).click()

    def open_menu(self) -> Locator:
        """Open the menu of the strip; return what is in it."""
        self.strip.get_by_role("button", name="Menu").click()
        return self.page.get_by_test_id("stPopoverBody")

    def copied_link(self) -> str:
        """Copy the first link of the menu; return what then is on the clipboard."""
        self.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page.evaluate("() => navigator.clipboard.writeText('')")
        self.open_menu().get_by_role("button", name="Copy link").first.click()
        read = self.await_js("() => navigator.clipboard.readText()")
        self.page.keyboard.press("Escape")
        return str(read.json_value())

    def draw_a_one(self, board: Locator) -> None:
        """Draw a one with the mouse."""
        board.scroll_into_view_if_needed()
        box = board.bounding_box()
        assert box is not None
        self.page.mouse.move(box["x"] + 0.52 * box["width"], box["y"] + 0.15 * box["height"])
        self.page.mouse.down()
        for share in (0.3, 0.5, 0.7, 0.85):
            self.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + share * box["height"])
        self.page.mouse.up()

    def choose(self, option: str) -> None:
        """Press an option of a row of options."""
        self.main.get_by_role("radio", name=option, exact=True).click()

    def pick(self, label: str | re.Pattern[str], option: str) -> None:
        """Choose an option of a list, which is opened again where scrolling has closed it."""
        box = self.main.get_by_role("combobox", name=label)
        choice = self.page.get_by_role("option", name=option, exact=True)

        def choose() -> None:
            if box.get_attribute("aria-expanded") != "true":
                box.click()
            box.fill(option)  # of a long list only what is in sight is there
            choice.click(timeout=TRY_MILLISECONDS)

        self._until_done(choose)

    def open_list(self, box: Locator) -> Locator:
        """Open a list by the keyboard, again where a page just drawn lost the key; its options."""
        options = self.page.get_by_role("option")

        def press() -> None:
            if box.get_attribute("aria-expanded") != "true":
                box.press("ArrowDown")
            expect(options).not_to_have_count(0, timeout=TRY_MILLISECONDS)

        self._until_done(press)
        return options

    def hover(self, place: Locator, shown: Locator) -> str:
        """Point at a place until something is shown there; return what it says.

        A figure that is drawn once more forgets where the pointer stands.
        """

        def point() -> None:
            self.page.mouse.move(0, 0)
            place.hover()
            expect(shown).to_have_count(1, timeout=TRY_MILLISECONDS)

        self._until_done(point)
        return shown.text_content() or ""

    def _until_done(self, attempt: Callable[[], None]) -> None:
        """Try again what a page that moved meanwhile has undone."""
        end = time.monotonic() + PATIENCE / 1000
        while True:
            try:
                return attempt()
            except (AssertionError, TimedOut):
                if time.monotonic() > end:
                    raise

    @property
    def run_id(self) -> str:
        """The run that the address names."""
        return parse_qs(urlsplit(self.page.url).query)["run"][0]

    @property
    def step_line(self) -> Locator:
        """Where the stage says which step it shows."""
        return self.main.locator(".stage .where")

    def step(self) -> int:
        """Return the step that the page says the run is at, once it says one."""
        expect(self.step_line).to_have_text(STEP)
        return _number(STEP, self.step_line.inner_text())

    def await_step(self, least: int) -> int:
        """Wait until the page says a step of at least ``least``; return it."""
        self.await_js(
            """least => [...document.querySelectorAll('[class*=stage-box-] *')].some(node => {
                const where = node.shadowRoot?.querySelector('.stage .where');
                const found = /^Step ([\\d,]+) of/.exec(where?.textContent ?? '');
                return found && Number(found[1].replaceAll(',', '')) >= least;
            })""",
            least,
        )
        return self.step()

    def figure(self, name: str) -> Locator:
        """Return a live figure by the beginning of its key: loss, accuracy, map, attention-map."""
        return self.main.locator(_FIGURE.format(name))

    def plotly(self, name: str, expression: str) -> Any:
        """Return a JavaScript expression of ``node``, the element that plotly draws in."""
        found = self._once_drawn(name, f"({{value: {expression}}})", None)
        return found.json_value()["value"]

    def await_plotly(self, name: str, expression: str, arg: Any = None) -> None:
        """Wait until a JavaScript expression of ``node`` and ``arg`` is true."""
        self._once_drawn(name, expression, arg)

    def _once_drawn(self, name: str, expression: str, arg: Any) -> JSHandle:
        """Wait for a true expression; look for ``node`` each time: it may be replaced meanwhile."""
        return self.await_js(
            f"""([selector, arg]) => {{
                const node = document.querySelector(selector);
                return node?._fullData && ({expression});
            }}""",
            [f"[data-testid=stMain] {_FIGURE.format(name)}", arg],
        )

    def await_draws(self, count: int) -> None:
        """Wait until the server has drawn ``count`` more times: the page, or parts that tick."""
        self._await_drawn(self.drawn + count)

    @contextmanager
    def redrawn(self) -> Iterator[None]:
        """Do something, and wait until the server has drawn since it was begun."""
        before = self.drawn
        yield
        self._await_drawn(before + 1)

    def _await_drawn(self, total: int) -> None:
        while self.drawn < total:
            self._connection.wait_for_event("framereceived", timeout=PATIENCE)

    def await_no_timer(self) -> None:
        """Wait until the page draws nothing again by itself."""
        self.settle()
        while self.timers:
            self._connection.wait_for_event("framereceived", timeout=PATIENCE)
        self.settle()

    def went_wrong(self) -> list[str]:
        """Return everything that went wrong in this tab until now, in words."""
        problems = list(self.problems)
        if not self.page.is_closed():
            for mark in _ERROR_MARKS:
                problems += [
                    f"on the page: {text}" for text in self.page.locator(mark).all_inner_texts()
                ]
        return problems

    @property
    def _connection(self) -> WebSocket:
        assert self._socket is not None, "the page has no connection to the server"
        return self._socket

    def _listen(self, socket: WebSocket) -> None:
        self._socket = socket
        self.timers.clear()
        socket.on("framereceived", self._hear)

    def _hear(self, frame: bytes | str) -> None:
        if isinstance(frame, str):
            return
        message = ForwardMsg.FromString(frame)
        match message.WhichOneof("type"):
            case "script_finished":
                self.drawn += 1
            case "new_session" if not message.metadata.run.fragment_ids:
                self.timers.clear()  # as the browser does
            case "auto_rerun":
                self.timers.add(message.auto_rerun.fragment_id)
            case "stop_auto_rerun":
                self.timers.difference_update(message.stop_auto_rerun.fragment_ids)
            case "file_urls_response":
                self._settled.add(message.file_urls_response.response_id)

    def _note_error(self, error: Error) -> None:
        self.problems.append(f"error in a script: {error}")

    def _note_message(self, message: ConsoleMessage) -> None:
        words = f"{message.text} ({message.location['url']})"
        if message.type == "error" and not EXPECTED.search(words):
            self.problems.append(f"in the console: {words}")


def _number(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    assert found is not None, f"{text!r} is not like {pattern.pattern}"
    return int(found[1].replace(",", ""))
