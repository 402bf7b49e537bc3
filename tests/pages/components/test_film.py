"""A run as one page: it asks nobody, is small enough, and says what it shows."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import json
import re
from html import unescape

import numpy as np
import pytest

from pages.components import film as component
from pages.components.film import Asked, Film
from pages.film import WRONG_INPUT, main
from pages.ui.files import film as films
from pages.ui.files import take_away
from tests.pages.learned_runs import learned_run
from tests.pages.made_runs import made_run
from tfm_core.inspect.progress import stage

POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')
PART = re.compile(r'<script type="text/plain" id="part-([\w-]+)">([\w+/=]*)</script>')


def parts(page: str) -> dict[str, bytes]:
    return {name: gzip.decompress(base64.b64decode(text)) for name, text in PART.findall(page)}


def policy(page: str) -> dict[str, str]:
    (found,) = POLICY.findall(page)
    return dict(rule.partition(" ")[::2] for rule in unescape(found).split("; "))


def hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("preset", ["translate", "vit-digits", "sentiment"])
def test_a_page_holds_every_kind_and_example_and_stays_small(store, preset) -> None:
    run = learned_run(store, preset)
    made = films.film(run, with_model=False)
    assert len(made) <= 5_000_000
    page = made.decode()
    opened, shown = parts(page), stage.read(run)
    told = json.loads(opened["film"])
    n_views = len(shown.kinds) * shown.n_attended
    assert len(told["views"]) == n_views == len(opened) - 1
    assert told["asking"] is None
    assert '<section id="asking" hidden>' in made.decode()
    kind, example = told["first"]
    assert (shown.kinds[kind], example) == (shown.kind, shown.example)
    header = opened["view-0"]
    facts = json.loads(header[4 : 4 + int.from_bytes(header[:4], "little")])
    assert [frame["step"] for frame in facts["frames"]] == list(shown.steps)
    assert run.meta.name in page
    assert f"{run.experiment.training.batch_size}</td>" in page
    assert "wasm" not in str(policy(page))


def test_nothing_but_what_stands_in_the_page_may_run_or_be_asked(store) -> None:
    page = films.film(learned_run(store, "reverse"), with_model=False).decode()
    rules = policy(page)
    assert rules["default-src"] == rules["connect-src"] == "'none'"
    (script,) = re.findall(r'<script type="module">(.*?)</script></body>', page, re.S)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.S)
    assert rules["script-src"] == hashed(script)
    assert rules["style-src"] == hashed(style)
    assert "unsafe" not in str(rules)
    assert not re.search(r'\s(?:src|href|style|on\w+)="', page)  # no address, nothing inline
    assert "url(" not in style
    assert "@import" not in style


def test_what_a_run_is_called_is_no_markup(store) -> None:
    page = films.film(made_run(store, name="</script><b>&"), with_model=False).decode()
    assert "<h1>&lt;/script&gt;&lt;b&gt;&amp;</h1>" in page
    assert "<b>&" not in page


def test_a_run_without_snapshots_shows_its_curves(store) -> None:
    page = films.film(made_run(store), with_model=False).decode()
    told = json.loads(parts(page)["film"])
    assert told["views"] == []
    assert told["stage"]["lines"]
    assert not told["stage"]["has_maps"]


def test_where_there_is_little_room_fewer_maps_are_shown_and_the_page_says_so(
    store, monkeypatch
) -> None:
    run = learned_run(store, "translate")
    whole = films.film(run, with_model=False)
    monkeypatch.setattr(films, "MAX_VALUES", 2_000)
    monkeypatch.setattr(films, "_MIN_VALUES", 100)
    small = films.film(run, with_model=False)
    assert len(small) < len(whole)
    header = parts(small.decode())["view-0"]
    facts = json.loads(header[4 : 4 + int.from_bytes(header[:4], "little")])
    assert facts["n_attended"] < stage.read(run).n_attended


def test_a_page_that_is_too_large_is_made_smaller(store, monkeypatch) -> None:
    run = learned_run(store, "translate")
    least = len(films.film(run, with_model=False)) - 1
    monkeypatch.setattr(films, "MAX_BYTES", least)
    monkeypatch.setattr(films, "_MIN_VALUES", 100)
    assert len(films.film(run, with_model=False)) <= least


def test_the_size_of_a_model_is_known_before_it_is_made() -> None:
    bare = Film("A", "", {}, (), 0, (), ())
    onnx = np.random.default_rng(7).bytes(400_000)  # as weights, hard to compress
    asked = Asked(onnx, {"src": (None, None)}, {}, ())
    added = len(component.page(dataclasses.replace(bare, asked=asked))) - len(component.page(bare))
    assert 0.8 < added / component.model_bytes(len(onnx)) < 1.1
    page = component.page(dataclasses.replace(bare, asked=asked)).decode()
    assert policy(page)["connect-src"] == "blob:"
    assert policy(page)["script-src"].endswith("'wasm-unsafe-eval'")
    assert parts(page)["model"] == onnx
    assert parts(page)["runtime"].startswith(b"\0asm")


def test_the_command_line_writes_the_page(store, tmp_path, monkeypatch, capsys) -> None:
    run = learned_run(store, "reverse")
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    assert main([run.id, "--out", str(tmp_path / "one.html")]) == 0
    assert (tmp_path / "one.html").read_bytes() == films.film(run, with_model=False)
    assert main([run.id, "--model"]) == WRONG_INPUT
    assert "no checkpoint" in capsys.readouterr().err


def test_the_panel_offers_the_page_and_the_model_and_says_why_not(store) -> None:
    run, offers = learned_run(store, "reverse"), {offer.key: offer for offer in take_away.OFFERS}
    page, onnx, heard = offers["page"], offers["onnx"], []
    assert page.name(run).endswith(".html")
    made = page.make(run, lambda share, words: heard.append(share), frozenset())
    assert made == films.film(run, with_model=False)
    assert heard == sorted(heard) != []
    (tick,) = page.ticks
    assert not tick.offered(run)  # it has no weights
    n_parameters = run.curves().started["n_parameters"]
    assert tick.more(run) == component.model_bytes(4 * n_parameters)
    assert onnx.about(run) == 4 * n_parameters
    assert "no checkpoint" in str(onnx.refusal(run))
