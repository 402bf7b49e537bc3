"""A lesson in the frame of a learning platform: its package starts it and reports the score."""

from __future__ import annotations

import http.server
import io
import threading
import zipfile
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import DESKTOP
from tests.browser.server import AppServer
from tfm_core.lessons import catalogue, scorm

pytestmark = pytest.mark.browser

PAGE = """<!DOCTYPE html><title>A platform</title><script>
window.values = {}; window.calls = [];
window.API = {
  LMSInitialize: () => { calls.push("initialize"); return "true"; },
  LMSGetValue: (name) => values[name] ?? "",
  LMSSetValue: (name, value) => { values[name] = value; return "true"; },
  LMSCommit: () => { calls.push("commit"); return "true"; },
  LMSFinish: () => { calls.push("finish"); return "true"; },
};
</script><iframe id="sco" src="/package/index.html" width="1200" height="700"></iframe>"""


@pytest.fixture
def platform() -> Iterator[Callable[[dict[str, str]], str]]:
    """Serve pages by their paths from another origin than the app's; return its address.

    It listens: a browser lets no page that was made up frame a server of this computer.
    """
    servers: list[http.server.ThreadingHTTPServer] = []

    def serve(pages: dict[str, str]) -> str:
        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                text = pages.get(self.path)
                self.send_response(404 if text is None else 200)
                self.send_header("content-type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write((text or "").encode())

            def log_message(self, *_what: object) -> None:
                """Say nothing."""

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_platform_gets_the_score_of_a_framed_lesson(
    chromium: Browser, server: AppServer, platform: Callable[[dict[str, str]], str]
) -> None:
    address = server.url.replace("127.0.0.1", "localhost").rstrip("/")
    content = scorm.package(catalogue.lesson("aligning-head"), address)
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        package = file.read("index.html").decode()

    context = chromium.new_context(viewport=DESKTOP)
    try:
        page = context.new_page()
        page.goto(f"{platform({'/course': PAGE, '/package/index.html': package})}/course")
        lesson = page.frame_locator("#sco").frame_locator("#lesson")
        expect(lesson.get_by_role("heading", name="The aligning head")).to_be_visible()
        page.wait_for_function("() => values['cmi.core.score.raw'] === '0'")
        assert page.evaluate("values['cmi.core.lesson_status']") == "incomplete"
        lesson.get_by_label("Your answer").first.fill("12")
        lesson.get_by_role("button", name="Check", exact=True).first.click()
        expect(lesson.get_by_text("The heads share the 48 numbers")).to_be_visible()
        page.wait_for_function("() => values['cmi.core.score.raw'] === '33'")
        page.evaluate("document.getElementById('sco').remove()")
        page.wait_for_function("() => calls.includes('finish')")
    finally:
        context.close()
