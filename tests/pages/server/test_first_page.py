"""Streamlit's page as the app serves it, with the style in it from the first byte."""

from __future__ import annotations

import asyncio
import gzip
import re
from pathlib import Path

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse
from starlette.routing import Route

from app import STYLE
from pages.server.first_page import FirstPage, page_html
from tfm_core.plots.palette import BACKGROUNDS, CARDS, contrast

PAGE = Path(st.__file__).parent / "static" / "index.html"

RULES = STYLE


async def page(_request: object) -> FileResponse:
    return FileResponse(PAGE)


async def file(_request: object) -> HTMLResponse:
    return HTMLResponse("saved")


async def health(_request: object) -> PlainTextResponse:
    return PlainTextResponse("fine")


APP = Starlette(
    routes=[Route("/train", page), Route("/media/x.html", file), Route("/health", health)],
    middleware=[Middleware(FirstPage, page=PAGE, style=RULES)],
)


def get(path: str, method: str = "GET", **asked: str) -> tuple[int, dict[str, str], bytes]:
    messages: list[dict] = []

    async def receive() -> None:
        await asyncio.Event().wait()

    async def send(message) -> None:
        messages.append(dict(message))

    headers = [(name.replace("_", "-").encode(), said.encode()) for name, said in asked.items()]
    scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": headers}
    asyncio.run(APP(scope | {"query_string": b""}, receive, send))
    said = {name.decode(): words.decode() for name, words in messages[0]["headers"]}
    return messages[0]["status"], said, b"".join(one.get("body", b"") for one in messages[1:])


def test_the_page_comes_with_the_style_behind_streamlits_own() -> None:
    status, said, body = get("/train")
    assert status == 200
    assert int(said["content-length"]) == len(body)
    html = body.decode()
    assert html.index("<body>") < html.index(RULES) < html.index('<div id="root">')


def test_the_page_is_packed_for_who_can_unpack_it() -> None:
    _status, said, body = get("/train", accept_encoding="gzip, br")
    assert (said["content-encoding"], int(said["content-length"])) == ("gzip", len(body))
    assert gzip.decompress(body) == get("/train")[2]


def test_a_browser_that_kept_the_page_of_before_gets_this_one() -> None:
    tag = get("/train")[1]["etag"]
    status, said, body = get("/train", if_none_match=tag, range="bytes=0-9")
    assert (status, said["etag"]) == (200, tag)
    assert RULES.encode() in body
    assert "last-modified" not in said


def test_the_head_of_the_page_has_its_length_and_no_body() -> None:
    _status, said, body = get("/train", "HEAD")
    assert body == b""
    assert int(said["content-length"]) == len(get("/train")[2])


@pytest.mark.parametrize(("path", "body"), [("/media/x.html", b"saved"), ("/health", b"fine")])
def test_everything_else_is_left_alone(path: str, body: bytes) -> None:
    assert get(path)[2] == body


def test_the_scripts_asked_for_at_once_are_there_and_asked_for_once() -> None:
    html = page_html(PAGE, "").decode()
    links = [part.partition('"')[0] for part in html.split('href="./static/')[1:]]
    assert len(links) == len(set(links))
    assert any("/BidiComponent." in link for link in links)
    assert any("MaterialSymbols" in link for link in links)
    for link in links:
        assert (PAGE.parent / "static" / link).is_file(), link


COLOUR = r"(#[0-9a-f]{6})"
PAIRS = re.findall(rf"\bcolor: light-dark\({COLOUR}, {COLOUR}\)", RULES)


def test_words_have_contrast_in_both_themes():
    for ground in [BACKGROUNDS, CARDS]:
        for pair in PAIRS:
            for colour, theme in zip(pair, ("light", "dark"), strict=True):
                assert contrast(colour, ground[theme]) >= 4.5


def test_every_colour_is_given_for_both_themes():
    assert len(PAIRS) >= 6
    for words in re.findall(r"color: ([^;]+);", RULES):
        assert words.startswith("light-dark(")


def test_no_class_that_changes_restyles_all_that_stands_below_it() -> None:
    """A browser that looks for a part of a class does so at every change of any element's."""
    rules = re.sub(r"/\*.*?\*/", "", RULES, flags=re.DOTALL)
    for selector in re.findall(r"([^{}]+)\{", rules):
        assert not re.search(r"\[class[*^$].*[\s>~+(]\*", selector, re.DOTALL), selector
