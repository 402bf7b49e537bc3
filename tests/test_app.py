"""The app says where it is: on this machine, and in the network where it listens there."""

import pytest
import streamlit as st

import app
from pages.components import addresses
from tfm_core import settings
from tfm_core.cli import main

AT_HOME, IN_THE_NETWORK = "http://localhost:8501/base", "http://192.0.2.7:8501/base"


@pytest.mark.parametrize(
    ("address", "network", "found"),
    [
        (None, "192.0.2.7", [AT_HOME, IN_THE_NETWORK]),
        ("0.0.0.0", "192.0.2.7", [AT_HOME, IN_THE_NETWORK]),
        (None, None, [AT_HOME]),
        ("127.0.0.1", "192.0.2.7", ["http://127.0.0.1:8501/base"]),
    ],
)
def test_it_names_the_addresses_that_it_listens_at(monkeypatch, address, network, found):
    options = {"server.address": address, "server.port": 8501, "server.baseUrlPath": "/base/"}
    monkeypatch.setattr(st, "get_option", options.get)
    monkeypatch.setattr(addresses, "get_internal_ip", lambda: network)
    assert app.addresses() == found


def test_it_says_https_where_it_has_a_certificate(monkeypatch):
    monkeypatch.setattr(st, "get_option", {"server.sslCertFile": "own.pem"}.get)
    assert app.addresses()[0].startswith("https://localhost")


def test_a_variable_that_nothing_reads_is_named_at_the_start_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of_tests = dict.fromkeys(
        ("TFM_SEED", "TFM_NIGHTLY", "TFM_UNTIL", "TFM_TEST_LANGUAGES_DIR"), "1"
    )
    for name, value in (of_tests | {"TFM_RUN_DIR": "/x", "TFM_COLOUR": "red"}).items():
        monkeypatch.setenv(name, value)
    said = "TFM_COLOUR is unknown.\nTFM_RUN_DIR is unknown. Did you mean TFM_RUNS_DIR?\n"
    app.check_settings()
    assert capsys.readouterr().err == said
    assert main(["presets"]) == 0
    assert capsys.readouterr().err == said
    assert settings.unknown({"TFM_RUNS_DIR": "/x", "TFM_LANGUAGE": "ko", "TFM_COLOUR": ""}) == []
