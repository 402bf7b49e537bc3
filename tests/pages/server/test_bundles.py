"""Streamlit's own files as the app sends them."""

import gzip
from functools import partial
from pathlib import Path

import streamlit as st
from starlette.responses import PlainTextResponse

from pages.server.static_files import IMMUTABLE, Bundles
from tests.pages.server.asking import answer

FOLDER = Path(st.__file__).parent / "static"
SCRIPT = next((FOLDER / "static" / "js").glob("index.*.js"))
STYLE = next((FOLDER / "static" / "css").glob("*.css"))
FONT = next((FOLDER / "static" / "media").glob("*.woff2"))
APP = Bundles(PlainTextResponse("the app"), folder=FOLDER, prefixes={"", "/some/base"})
HERE, FAR = ("127.0.0.1", 5000), ("192.0.2.7", 5000)


get = partial(answer, APP, client=HERE)


def address(path: Path) -> str:
    return f"/static/{path.parent.name}/{path.name}"


def test_a_file_is_sent_as_it_is_or_packed_and_all_else_left_to_the_app():
    for path, kind in [(SCRIPT, "text/javascript"), (STYLE, "text/css"), (FONT, "font/woff2")]:
        status, said, body = get(address(path), accept_encoding="gzip")
        assert (status, body) == (200, path.read_bytes())
        assert said["content-type"].startswith(kind)
        assert said["cache-control"] == IMMUTABLE
        assert "content-encoding" not in said
        assert get(f"/some/base{address(path)}")[2] == body
        again = get(address(path), if_none_match=said["etag"])
        assert (again[0], again[2]) == (304, b"")
    for way in [{"client": FAR}, {"x_forwarded_for": "192.0.2.7"}]:
        for path in [SCRIPT, STYLE]:
            status, said, body = get(address(path), accept_encoding="gzip, br", **way)
            assert (status, said["content-encoding"]) == (200, "gzip")
            assert int(said["content-length"]) == len(body) < path.stat().st_size / 2
            assert gzip.decompress(body) == path.read_bytes()
    assert get(address(SCRIPT), client=FAR)[2] == SCRIPT.read_bytes()
    assert get(address(FONT), client=FAR, accept_encoding="gzip")[2] == FONT.read_bytes()
    for path, asked in [
        (address(SCRIPT), {"range": "bytes=0-9"}),
        (address(SCRIPT), {"method": "HEAD"}),
        (f"{address(SCRIPT)}/", {}),
        ("/static/js/../../index.html", {}),
        ("/static/js/another.js", {}),
        ("/train", {}),
    ]:
        assert get(path, **asked)[2] == b"the app"


def test_a_file_that_went_is_left_to_the_app(tmp_path):
    script = tmp_path / "static" / "js" / "one.js"
    script.parent.mkdir(parents=True)
    script.write_text("let one = 1;")
    app = Bundles(PlainTextResponse("the app"), folder=tmp_path, prefixes={""})
    script.unlink()
    assert answer(app, "/static/js/one.js")[2] == b"the app"
