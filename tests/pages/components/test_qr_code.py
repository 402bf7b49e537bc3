"""The code of a link: what a camera needs of it, and that nobody pays for it who wants none."""

from __future__ import annotations

import subprocess
import sys
from urllib.parse import unquote
from xml.etree import ElementTree

import segno

from pages.components.buttons import qr_code

LINK = "https://example.org/train?v=1&preset=translate~ec7f&model.n_heads=8"


def test_a_code_says_the_address_dark_on_white_with_room_around_it() -> None:
    kind, _comma, text = qr_code(LINK).partition(",")
    assert kind.startswith("data:image/svg+xml")
    drawn = ElementTree.fromstring(unquote(text))
    side = segno.make_qr(LINK, error="m").symbol_size(border=4)[0]
    assert drawn.attrib["viewBox"] == f"0 0 {side} {side}"
    ground, cells = drawn
    assert ground.attrib["fill"] == "#fff"
    assert cells.attrib["stroke"] == "#000"
    assert cells.attrib["d"].startswith("M4 4.5h7")  # the first finder, behind four white cells


def test_an_address_that_no_camera_would_read_has_no_code() -> None:
    assert qr_code("https://example.org/?" + "a" * 850)
    assert qr_code("https://example.org/?" + "a" * 950) == ""
    assert qr_code("https://example.org/?" + "a" * 9_000) == ""


def test_nothing_is_loaded_for_it_before_it_is_asked_for() -> None:
    code = "import sys; import pages.ui.frame; sys.exit('segno' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
