"""The app in another site's frame: a course's page as high as it is, a lesson's score reported."""

import http.server
import io
import threading
import zipfile
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import DESKTOP
from tests.browser.server import AppServer
from tests.browser.tab import PATIENCE, await_js
from tfm_core.lessons import catalogue, scorm

pytestmark = pytest.mark.browser

COURSE = """<!DOCTYPE html><title>A course</title><body style="margin: 0"><script>
    addEventListener("message", ({data, source}) => {
        const frame = document.querySelector("iframe");
        if (source === frame.contentWindow && data.subject === "lti.frameResize")
            frame.height = data.height;
    });
</script><iframe src="ADDRESS" width="1000" height="300" style="border: 0"></iframe>"""
SCROLLS = """() => {
    const main = document.querySelector("[data-testid=stMain]");
    return main.scrollHeight > main.clientHeight + 1;
}"""
PLATFORM = """<!DOCTYPE html><title>A platform</title><script>
window.values = {}; window.calls = [];
window.API = {
  LMSInitialize: () => { calls.push("initialize"); return "true"; },
  LMSGetValue: (name) => values[name] ?? "",
  LMSSetValue: (name, value) => { values[name] = value; return "true"; },
  LMSCommit: () => { calls.push("commit"); return "true"; },
  LMSFinish: () => { calls.push("finish"); return "true"; },
};
</script><iframe id="sco" src="/package/index.html" width="1200" height="700"></iframe>"""

OpenSite = Callable[[dict[str, str]], Page]


@pytest.fixture
def open_site(chromium: Browser) -> Iterator[OpenSite]:
    """Serve pages by their paths from another origin than the app's, and open the first of them.

    A server, because a browser lets no page that was made up frame a server of this computer.
    """
    pages: dict[str, str] = {}
    problems: list[str] = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = pages.get(self.path)
            self.send_response(404 if text is None else 200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, *_what: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        context = chromium.new_context(viewport=DESKTOP)
        context.set_default_timeout(PATIENCE)

        def open_it(site: dict[str, str]) -> Page:
            pages.update(site)
            page = context.new_page()
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.goto(f"http://127.0.0.1:{server.server_port}{next(iter(site))}")
            return page

        yield open_it
        context.close()
        server.shutdown()
    assert problems == []


def test_a_page_in_a_course_is_the_page_alone_and_as_high_as_it_is(
    server: AppServer, open_site: OpenSite
) -> None:
    address = f"{server.url}/challenges?embed=true"
    page = open_site({"/course": COURSE.replace("ADDRESS", address)})
    frame = page.frames[1]
    title = frame.get_by_role("heading", level=1)
    expect(title).to_have_text("Challenges")
    expect(frame.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(frame.get_by_test_id("stTopNav")).to_have_count(0)
    expect(frame.locator(".st-key-strip, .copy-link, .search")).to_have_count(0)
    box = title.bounding_box()
    assert box is not None
    assert box["y"] < 40

    # the frame becomes as high as the page says; only the course scrolls
    await_js(page, "Number(document.querySelector('iframe').height) > 600")
    await_js(frame, f"() => !({SCROLLS})()")

    # a link within keeps the frame, and the course hears of the new page, too
    frame.get_by_role("link", name="The aligning head").click()
    expect(title).to_have_text("The aligning head")
    expect(page.frame_locator("iframe").locator(".st-key-task-bar")).to_be_visible()
    assert "lesson=aligning-head" in frame.url
    assert "embed=true" in frame.url
    expect(frame.locator(".st-key-strip")).to_have_count(0)
    await_js(frame, f"() => !({SCROLLS})()")


def test_a_platform_gets_the_score_of_a_framed_lesson(
    server: AppServer, open_site: OpenSite
) -> None:
    content = scorm.package(catalogue.lesson("aligning-head"), server.url)
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        package = file.read("index.html").decode()
    page = open_site({"/platform": PLATFORM, "/package/index.html": package})
    lesson = page.frame_locator("#sco").frame_locator("#lesson")
    expect(lesson.get_by_role("heading", name="The aligning head")).to_be_visible()
    await_js(page, "() => values['cmi.core.score.raw'] === '0'")
    assert page.evaluate("values['cmi.core.lesson_status']") == "incomplete"
    lesson.get_by_label("Your answer").first.fill("12")
    lesson.get_by_role("button", name="Check", exact=True).first.click()
    expect(lesson.get_by_text("The heads share the 48 numbers")).to_be_visible()
    await_js(page, "() => values['cmi.core.score.raw'] === '33'")
    page.evaluate("document.getElementById('sco').remove()")
    await_js(page, "() => calls.includes('finish')")
