"""Streamlit's page as the app serves it, with the style in it from the first byte."""

import gzip
import re
from functools import partial
from pathlib import Path

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse
from starlette.routing import Route

from app import STYLE
from pages.server.first_page import FirstPage, page_html
from tests.pages.server.asking import answer
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


get = partial(answer, APP)


def test_the_page_comes_packed_with_its_style_and_anew_for_who_kept_it():
    status, said, body = get("/train")
    assert status == 200
    assert int(said["content-length"]) == len(body)
    html = body.decode()
    assert html.index("<body>") < html.index(RULES) < html.index('<div id="root">')
    _status, said, body = get("/train", accept_encoding="gzip, br")
    assert (said["content-encoding"], int(said["content-length"])) == ("gzip", len(body))
    assert gzip.decompress(body) == get("/train")[2]
    _status, said, body = get("/train", "HEAD")
    assert body == b""
    assert int(said["content-length"]) == len(get("/train")[2])
    tag = get("/train")[1]["etag"]
    status, said, body = get("/train", if_none_match=tag, range="bytes=0-9")
    assert (status, said["etag"]) == (200, tag)
    assert RULES.encode() in body
    assert "last-modified" not in said
    html = page_html(PAGE, "").decode()
    links = [part.partition('"')[0] for part in html.split('href="./static/')[1:]]
    assert len(links) == len(set(links))
    assert any("/BidiComponent." in link for link in links)
    assert any("MaterialSymbols" in link for link in links)
    for link in links:
        assert (PAGE.parent / "static" / link).is_file(), link


def test_the_document_says_the_language_of_its_visitor():
    for path, asked, spoken in [
        ("/train", {}, "en"),
        ("/train", {"accept_language": "ko-KR,ko;q=0.9,en;q=0.8"}, "ko"),
        ("/train", {"accept_language": "fr", "cookie": "tfm_language=ko"}, "ko"),
        ("/train?lang=en", {"cookie": "tfm_language=ko"}, "en"),
        ("/train?lang=<b>", {}, "en"),
    ]:
        _status, headers, body = get(path, **asked)
        assert f'<html lang="{spoken}">' in body.decode()
        assert int(headers["content-length"]) == len(body)
    assert headers["vary"] == "Accept-Encoding, Accept-Language, Cookie"
    assert get("/train")[1]["etag"] != get("/train?lang=ko")[1]["etag"]


@pytest.mark.parametrize(("path", "body"), [("/media/x.html", b"saved"), ("/health", b"fine")])
def test_everything_else_is_left_alone(path, body):
    assert get(path)[2] == body


COLOUR = r"(#[0-9a-f]{6})"
PAIRS = re.findall(rf"\bcolor: light-dark\({COLOUR}, {COLOUR}\)", RULES)


def test_words_have_contrast_and_no_class_restyles_what_stands_below():
    for ground in [BACKGROUNDS, CARDS]:
        for pair in PAIRS:
            for colour, theme in zip(pair, ("light", "dark"), strict=True):
                assert contrast(colour, ground[theme]) >= 4.5
    """A browser that looks for a part of a class does so at every change of any element's."""
    rules = re.sub(r"/\*.*?\*/", "", RULES, flags=re.DOTALL)
    for selector in re.findall(r"([^{}]+)\{", rules):
        assert not re.search(r"\[class[*^$].*[\s>~+(]\*", selector, re.DOTALL), selector


def test_the_address_of_a_page_that_is_part_of_another_leads_there():
    for path, there in (
        ("/gpt?part=write&prompt=the+dog&lang=ko", "try?view=continue&text=the+dog&lang=ko"),
        ("/base/draw", "try?view=draw"),
        ("/lessons?lesson=translate.3&embed=true", "challenges?lesson=translate.3&embed=true"),
        ("/experiments?experiment=heads", "challenges?experiment=heads"),
        ("/experiments", "challenges?experiment=no-causal-mask"),
        ("/find-the-bug?level=3&pair=a.b", "challenges?bug=3&pair=a.b"),
        ("/translate/?weights=3", "../try?view=write&method=greedy&step=3"),
    ):
        status, said, _body = get(path)
        assert (status, said["location"]) == (307, there)
    assert get("/train?view=draw")[0] == 200
