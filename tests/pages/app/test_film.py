"""A run as one page: it asks nobody, is small enough, and says what it shows."""

import base64
import gzip
import hashlib
import json
import re
from html import unescape

import numpy as np
import pytest

from pages import publish
from pages.app.runs import film as films
from pages.components.html_page import html_page
from pages.publish import main
from tests.pages.learned_runs import learned_run
from tests.pages.made_runs import made_run, with_worker
from tfm_core.cli import WRONG_INPUT
from tfm_core.inspect import stage

POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')
PART = re.compile(r'<script type="text/plain" id="part-([\w-]+)">([\w+/=]*)</script>')


def parts(page: str) -> dict[str, bytes]:
    return {name: gzip.decompress(base64.b64decode(text)) for name, text in PART.findall(page)}


def policy(page: str) -> dict[str, str]:
    (found,) = POLICY.findall(page)
    return dict(rule.partition(" ")[::2] for rule in unescape(found).split("; "))


def test_every_script_of_a_page_is_in_it_in_order_and_the_last_is_a_module():
    page = html_page("Title", ["<p>"], styles=[], scripts=["one()", "two()", "three()"]).decode()
    assert re.findall("<script([^>]*)>(.*?)</script>", page) == [
        ("", "one()"),
        ("", "two()"),
        (' type="module"', "three()"),
    ]


def hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("preset", ["translate", "vit-digits", "sentiment"])
def test_a_page_holds_every_kind_and_example_and_stays_small(store, preset):
    run = learned_run(store, preset)
    made = films.film(run, with_model=False)
    assert len(made) <= 5_000_000
    page = made.decode()
    opened, shown = parts(page), stage.read_stage(run)
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


def test_nothing_but_what_stands_in_the_page_may_run_or_be_asked(store):
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


def test_a_name_is_no_markup_and_a_run_without_snapshots_shows_its_curves(store):
    page = films.film(made_run(store, name="</script><b>&"), with_model=False).decode()
    assert "<h1>&lt;/script&gt;&lt;b&gt;&amp;</h1>" in page
    assert "<b>&" not in page
    page = films.film(made_run(store), with_model=False).decode()
    told = json.loads(parts(page)["film"])
    assert told["views"] == []
    assert told["stage"]["lines"]
    assert not told["stage"]["has_maps"]


def test_a_page_that_is_too_large_is_made_smaller(store, monkeypatch):
    run = learned_run(store, "translate")
    least = len(films.film(run, with_model=False)) - 1
    monkeypatch.setattr(films, "MAX_BYTES", least)
    monkeypatch.setattr(films, "_MIN_VALUES", 100)
    assert len(films.film(run, with_model=False)) <= least


def test_the_size_of_a_model_is_known_before_it_is_made(store):
    run, still = made_run(store), {"stage": {"live": False}}
    onnx = np.random.default_rng(7).bytes(400_000)  # as weights, hard to compress
    page = films.page(run, still, [], onnx=onnx)
    added = len(page) - len(films.page(run, still, []))
    assert 0.8 < added / films.added_bytes(len(onnx)) < 1.1
    page = page.decode()
    assert policy(page)["connect-src"] == "blob:"
    assert policy(page)["script-src"].endswith("'wasm-unsafe-eval'")
    assert parts(page)["model"] == onnx
    assert parts(page)["runtime"].startswith(b"\0asm")


def test_the_command_line_writes_the_page_of_a_run_that_is_over(
    store, tmp_path, monkeypatch, capsys
):
    run, path = learned_run(store, "reverse"), tmp_path / "one.html"
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    assert main([run.id, "--to", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert path.read_bytes() == films.film(run, with_model=False, is_public=True)
    assert main([run.id, "--model"]) == WRONG_INPUT
    assert "no checkpoint" in capsys.readouterr().err
    assert main(["no-such-run", "--to", str(path)]) == WRONG_INPUT
    assert "no-such-run" in capsys.readouterr().err


def test_the_command_line_writes_the_page_until_the_run_ends(store, tmp_path, monkeypatch):
    run, path = with_worker(learned_run(store, "reverse"), "paused"), tmp_path / "one.html"
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    reloads = []

    def sleep(seconds):
        reloads.append(f'<meta http-equiv="refresh" content="{seconds}">' in path.read_text())
        if len(reloads) == 2:
            with_worker(run, "stopped")

    monkeypatch.setattr(publish.time, "sleep", sleep)
    assert main([run.id, "--to", str(path)]) == 0
    assert reloads == [True, True]
    assert "refresh" not in path.read_text()


def test_a_public_page_does_not_name_the_run_or_its_folder(store, tmp_path):
    run = learned_run(store, "reverse")
    page = films.film(run, with_model=False, is_public=True)
    for content in (page, *parts(page.decode()).values()):
        assert run.id.encode() not in content
        assert str(tmp_path).encode() not in content
