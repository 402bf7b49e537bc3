"""Addresses that others can open, and their QR codes."""

from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
import segno
import streamlit as st

from pages.components import addresses
from pages.components.buttons import qr_code


@pytest.fixture
def listening(monkeypatch):
    """What the server listens on, and what its network calls this computer."""
    said: dict[str, object] = {"server.address": None}
    monkeypatch.setattr(st, "get_option", said.get)
    monkeypatch.setattr(addresses, "get_internal_ip", lambda: "192.168.7.11")
    return said


def test_an_address_of_this_computer_alone_is_said_by_its_name_in_the_network(listening):
    for host in ["localhost", "127.0.0.1", "127.3.5.7", "[::1]", "0.0.0.0", "app.localhost"]:
        address = f"http://{host}:8501/live/a?b=c"
        assert addresses.is_local(address)
        assert addresses.for_others(address) == "http://192.168.7.11:8501/live/a?b=c"
        assert "http://192.168.7.11:8501/live/a?b=c" in addresses.local_note(address)


@pytest.mark.parametrize(
    "address",
    ["https://example.org/live/a", "http://192.168.1.2:8501/", "http://[2001:db8::1]:8501/"],
)
def test_an_address_that_others_can_open_stays(address, listening):
    assert addresses.for_others(address) == address
    assert not addresses.local_note(address)


def test_who_listens_on_one_computer_or_has_no_network_has_no_address_for_others(
    listening, monkeypatch
):
    listening["server.address"] = "127.0.0.1"
    assert addresses.for_others("http://localhost:8501/") is None
    assert "--server.address 0.0.0.0" in addresses.local_note("http://localhost:8501/")
    listening["server.address"] = None
    monkeypatch.setattr(addresses, "get_internal_ip", lambda: None)
    assert addresses.for_others("http://localhost:8501/") is None


LINK = "https://example.org/train?v=1&preset=translate~ec7f&model.n_heads=8"


def test_a_code_says_the_address_dark_on_white_if_a_camera_can_read_it():
    kind, _comma, text = qr_code(LINK).partition(",")
    assert kind.startswith("data:image/svg+xml")
    drawn = ElementTree.fromstring(unquote(text))
    side = segno.make_qr(LINK, error="m").symbol_size(border=4)[0]
    assert drawn.attrib["viewBox"] == f"0 0 {side} {side}"
    ground, cells = drawn
    assert ground.attrib["fill"] == "#fff"
    assert cells.attrib["stroke"] == "#000"
    assert cells.attrib["d"].startswith("M4 4.5h7")  # the first finder, behind four white cells
    assert qr_code("https://example.org/?" + "a" * 850)
    assert qr_code("https://example.org/?" + "a" * 950) == ""
    assert qr_code("https://example.org/?" + "a" * 9_000) == ""
