"""What the server says beside its pages: headers on every answer, scripts of others, no metrics."""

import gzip
import re
from pathlib import Path

import plotly
import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from pages.server import static_files
from pages.server.first_page import SecurityHeaders, headers, page_html
from pages.server.guards import NoMetrics
from tests.pages.server.asking import answer

PAGE = Path(st.__file__).parent / "static" / "index.html"
NAMES = {
    "content-security-policy",
    "permissions-policy",
    "referrer-policy",
    "x-content-type-options",
}


async def fine(request: object) -> PlainTextResponse:
    return PlainTextResponse("fine", headers={"X-Content-Type-Options": "anything"})


def server() -> Starlette:
    """The routes and the middleware of the app, without Streamlit between them."""
    paths = ("/_stcore/metrics", "/some/base/_stcore/metrics", "/fine")
    return Starlette(
        routes=[
            *static_files.vendor_routes(["", "/some/base"]),
            *(Route(path, fine) for path in paths),
        ],
        middleware=[Middleware(SecurityHeaders, page=page_html(PAGE, "")), Middleware(NoMetrics)],
    )


def get(path: str, **asked: str) -> tuple[int, dict[str, str], int]:
    """Return status, headers and length of an answer. asked: headers of the request."""
    status, said, body = answer(server(), path, **asked)
    return status, said, len(body)


@pytest.mark.parametrize("base", ["", "/some/base"])
def test_plotly_and_packed_scripts_are_served_below_the_base_path(base):
    script = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    status, said, length = get(f"{base}/vendor/plotly/plotly.min.js")
    assert (status, length) == (200, script.stat().st_size)
    assert said["content-type"].startswith("text/javascript")
    assert said["cache-control"] == static_files.VENDOR_CACHE
    kept = static_files.VENDORS["plotly/plotly-cartesian.min.js"].read_bytes()
    status, said, length = get(base + CARTESIAN, accept_encoding="br, gzip")
    assert (status, length, said["content-encoding"]) == (200, len(kept), "gzip")
    assert said["cache-control"] == static_files.VENDOR_CACHE
    status, plain, length = get(base + CARTESIAN)
    assert (status, length) == (200, len(gzip.decompress(kept)))
    assert "content-encoding" not in plain
    assert plain["content-type"].startswith("text/javascript")
    assert get(base + CARTESIAN, if_none_match=said["etag"])[::2] == (304, 0)


CARTESIAN = "/vendor/plotly/plotly-cartesian.min.js"


def test_the_bundle_of_plotly_is_of_the_release_that_makes_the_figures():
    """Both draw the same figures, so both have to read them in the same way."""
    whole = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    bundle = gzip.decompress(static_files.VENDORS["plotly/plotly-cartesian.min.js"].read_bytes())
    release = re.compile(rb"plotly\.js [^v]*v(\d+)\.")
    (major,), (ours,) = (release.findall(script[:200]) for script in (whole.read_bytes(), bundle))
    assert major == ours


def test_the_scripts_of_others_are_served():
    status, said, length = get("/vendor/uplot/uplot.js")
    assert (status, said["content-type"].split(";")[0]) == (200, "text/javascript")
    assert length > 10_000


def test_nothing_else_of_a_vendor_is_served():
    for path in [
        "/vendor",
        "/vendor/",
        "/vendor/plotly/",
        "/vendor/plotly/widgetbundle.js",
        "/vendor/plotly/datasets/iris.csv.gz",
        "/vendor/plotly/templates/plotly.json",
        "/vendor/plotly/../../../app.py",
        "/vendor/plotly/x/../widgetbundle.js",
        "/vendor/uplot/NOTICE",
        "/vendor/uplot/../uplot/NOTICE",
    ]:
        assert get(path)[0] == 404


def test_every_answer_has_the_headers():
    for path in ["/fine", CARTESIAN, "/vendor/nothing", "/_stcore/metrics", "/nowhere"]:
        _status, said, _length = get(path)
        assert said.keys() >= NAMES
        assert said["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("base", ["", "/some/base"])
def test_metrics_are_closed(base):
    assert get("/fine")[0] == 200
    assert get(f"{base}/_stcore/metrics")[0] == 404
    assert get(f"{base}/_stcore/metrics/")[0] == 404


def policy(page: bytes = b"", frame_ancestors: str | None = None) -> dict[str, list[str]]:
    said = headers(page, frame_ancestors)["content-security-policy"]
    parts = [part.split() for part in said.split("; ")]
    return {name: sources for name, *sources in parts}


def test_no_script_but_the_servers_and_no_other_host():
    said = policy(PAGE.read_bytes())
    for name, sources in said.items():
        assert not {"*", "https:", "http:", "'unsafe-eval'"} & set(sources), name
        assert not re.search(r"\w\.\w", " ".join(sources)), name
    assert "'unsafe-inline'" not in said["script-src"]
    assert said["object-src"] == said["frame-src"] == ["'none'"]


def test_the_pages_own_script_is_named_by_its_hash_and_frames_by_the_host():
    (hashed,) = [one for one in policy(b"<script>\n1\n</script>")["script-src"] if "sha" in one]
    assert hashed == "'sha256-PBL+VNcqg2ezLpeQ7yj8J15XmnKAnnIb2qth9B/WTJ4='"
    page = page_html(PAGE, "")
    own = page.count(b"<script>")
    said = policy(page)["script-src"]
    assert sum(one.startswith("'sha256-") for one in said) == own > 0
    assert "frame-ancestors" not in policy()
    assert policy(b"", "'self' https://a.org")["frame-ancestors"] == ["'self'", "https://a.org"]
