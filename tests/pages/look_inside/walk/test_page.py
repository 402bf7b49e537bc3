"""The walk, through the frame: every step of every family, the link, the questions."""

import json
import re

import numpy as np
import pytest
import torch

from pages.look_inside import walk as page
from tests.pages.counted import SLOW, calls_of
from tests.pages.looking import said
from tests.pages.opening import opened_at
from tests.pages.shown import shown as shown_of
from tests.trace.test_trace import FAMILIES, VARIANTS, experiment, name_of
from tfm_core.data.user_picture import to_text
from tfm_core.inspect.attention import example as own_example
from tfm_core.inspect.attention.trained import steps_of, weights_mark
from tfm_core.trace.shown import topic_text
from tfm_core.trace.subject import subject
from tfm_core.trace.trace import trace


def opened(family="encoder-decoder", **query):
    return opened_at("look_inside/walk.py", draft=experiment(family), **query)


def title(at):
    return at.header[0].value


@pytest.mark.core(2)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_of_every_family_opens_by_next(store, family):
    at = opened(family)
    steps = trace(subject(experiment(family)))
    for number, step in enumerate(steps, 1):
        assert not at.error
        assert title(at) == f"{number} · {step.title}"
        assert "untrained" in said(at)
        _nothing_is_given_away(at, step)
        if step is not steps[-1]:
            at.button(key="walk-right").click().run()
    assert at.query_params["part"] == steps[-1].name
    assert at.button(key="walk-right").disabled


def _nothing_is_given_away(at, step):
    """Hold the words of the page and the tensors that can be chosen to what is asked for."""
    shown = [one.value for one in at.markdown if "Predict:" not in one.value]
    shown += [one.value for one in (*at.caption, *at.code, *at.header)]
    if step.question.shapes and step.question.options:
        sizes = step.question.answer
        assert not any(sizes in text for text in shown), step.name
        assert "( ? )" in " ".join(shown)
    pickers = [one for one in at.selectbox if one.label == "Tensor"]
    for picker in pickers:
        names = {option.partition(":")[0] for option in picker.options}
        assert not names & step.hidden, step.name
    assert "Mistake:" not in " ".join(shown)


def test_the_answer_reveals_what_was_hidden_and_stays(store):
    at = opened("vit", part="patches")
    assert "(10, 16, 49)" not in said(at)
    assert not [part for part in at.get("bidi_component") if "walk-picture" in part.proto.id]
    at.number_input[0].set_value(4)
    at.button[-2].click().run()
    assert "Not 4. That is one row." in at.warning[0].value
    assert "(10, 16, 49)" not in said(at)
    at.number_input[0].set_value(16)
    at.button[-2].click().run()
    assert "Right. 4 x 4 = 16." in at.success[0].value
    for name in ("patch-projection", "patches"):
        at.selectbox(key="walk-list").set_value(name).run()
    assert "(10, 16, 49)" in said(at)
    assert "Right. 4 x 4" in at.success[0].value
    assert [part for part in at.get("bidi_component") if "walk-picture" in part.proto.id]


def test_the_link_opens_a_step_and_another_model_the_same_or_as_far_on(store):
    at = opened(step="scores")  # as older links call it
    assert title(at) == "8 · Scores, scaled"
    at.button(key="walk-left").click().run()
    assert title(at) == "7 · Split into heads"
    assert at.query_params["part"] == "split"
    at = opened("recurrent", part="writing")
    assert title(at) == "8 · The decoder writes"
    at.button_group(key="walk-source").set_value("book").run()
    assert title(at) == "8 · Scores, scaled"  # as far on: it has no step of that name
    at.button_group(key="walk-source").set_value("mine").run()
    assert title(at) == "8 · The decoder writes"


@pytest.mark.parametrize("text", ["99", "9" * 500])
def test_a_step_that_does_not_exist_is_said(store, text):
    at = opened(part=text)
    assert f"part is “{text[:20]}” in the link, but must be one of" in at.warning[0].value


@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_has_its_words(family):
    for variant in (one for one in VARIANTS if one[0] == family):
        steps = trace(subject(experiment(family, **variant[1])))
        names = {step.name for step in steps}
        for step in steps:
            assert step.topics, name_of(variant)
            for topic in step.topics:
                assert set(re.findall("{step:([^}]*)}", topic_text(topic))) <= names, name_of(
                    variant
                )


def test_a_run_is_walked_through_at_any_step_and_with_your_own_sentence(store, recorded):
    at = opened(run="recorded-korean", part="whole")
    run = store.get("recorded-korean")
    first, *_later, last = steps_of(run)
    assert at.select_slider(key="head-step").value == -1
    shown = set()
    for step, asked in ((first, str(first)), (last, None)):
        at.select_slider(key="head-step").set_value(-1 if asked is None else step).run()
        assert at.query_params.get("step") in (asked, [asked])
        shown.add(json.dumps(shown_of(at)))
    assert len(shown) == 2  # other weights, other numbers
    at.text_input(key="walk-text").set_value("the teacher bought a book").run()
    assert at.query_params["walk-text"] == "the teacher bought a book"
    at.text_input(key="walk-text").set_value("the dragon bought a book").run()
    assert "dragon" in at.error[0].value
    assert title(at).endswith("The whole forward pass")


def test_a_part_is_knocked_out_by_the_link_and_put_back(store, recorded):
    at = opened(run="recorded-korean", part="whole", out="decoder.3.cross,decoder.9.cross")
    assert at.query_params["out"] == "decoder.3.cross"
    run = store.get("recorded-korean")
    mark = weights_mark(run, run.checkpoint_step)
    whole, without = (
        page._trained(str(run.folder), run.checkpoint_step, mark, "", out)
        for out in ((), ("decoder.3.cross",))
    )
    reads = [made.cache["decoder.layers.1.residual"] for made in (whole, without)]
    assert torch.equal(*reads)
    answers = [made.cache["output.logits"] for made in (whole, without)]
    assert not torch.allclose(*answers, atol=0.1)
    change = without.cache["decoder.layers.2.cross_attention_norm.change"]
    assert not change.any()


DRAWING = np.zeros((112, 112), np.uint8)
DRAWING[20:92, 52:60] = 255


def test_a_drawn_digit_is_walked_through_as_the_model_reads_it(store, recorded):
    run = store.get("recorded-digits")
    digit, _notes = own_example.read_picture(run, DRAWING)
    at = opened(run=run.id, part="whole", **{"walk-digit": f"picture-{to_text(digit)}"})
    assert "Your digit." in said(at)
    mark = weights_mark(run, run.checkpoint_step)
    own = f"picture-{to_text(digit)}"
    assert at.query_params["walk-digit"] in (own, [own])
    made = page._trained(str(run.folder), run.checkpoint_step, mark, own, ())
    (logits,) = made.cache["head.logits"]
    read = own_example.look_at_picture(run, digit).probabilities
    np.testing.assert_allclose(logits.softmax(-1).numpy(), read, atol=1e-5)


def test_a_drawing_is_kept_as_the_model_reads_it_until_it_is_taken_back(recorded, monkeypatch):
    run, kept = recorded.get("recorded-digits"), {}
    monkeypatch.setattr(page.st, "session_state", kept)
    page.draw(run, DRAWING)
    digit, _notes = own_example.read_picture(run, DRAWING)
    assert kept["walk-own_digit"] == f"picture-{to_text(digit)}"
    for nothing in (np.zeros_like(DRAWING), None):
        page.draw(run, nothing)
        assert kept["walk-own_digit"] == ""


@pytest.mark.parametrize("text", ["picture-eJw", "picture-", "seven", "picture-" + "a" * 5000])
def test_a_drawing_that_a_link_says_wrong_is_said_and_the_example_shown(store, recorded, text):
    at = opened(run="recorded-digits", **{"walk-digit": text})
    assert len(at.warning) + len(at.error) == 1
    assert "Your digit." not in said(at)


def test_a_step_without_weights_is_said_and_the_nearest_one_shown(store, recorded):
    at = opened(run="recorded-korean", weights="7")
    assert any("step is “7” in the link" in warning.value for warning in at.warning)
    at = opened(run="recorded-korean", weights="soon")
    assert any("; the newest is shown." in warning.value for warning in at.warning)
    at = opened(run="recorded-korean", weights="newest")
    assert not at.warning


def test_a_model_is_built_and_walked_through_once_for_all_steps(store):
    at = opened(part="softmax")
    with calls_of(*SLOW) as calls:
        for name in ("weighted-sum", "scores", "softmax"):
            at.selectbox(key="walk-list").set_value(name).run()
    assert not calls


def test_a_link_to_a_model_of_no_run_says_what_is_shown_instead(store):
    for query in ({"show": "run"}, {"show": "run", "run": "no-such-run"}):
        at = opened(**query)
        sentences = [warning.value for warning in at.warning]
        assert sentences[-1].endswith("Showing your configuration.")
        assert not any("must be one of" in sentence for sentence in sentences)


def test_cold_it_opens_on_a_recorded_translator_at_its_last_step(store, recorded):
    app = opened_at("look_inside/walk.py")
    assert "untrained" not in said(app)
    assert app.query_params["run"] in ("recorded-korean", ["recorded-korean"])
    app.run()
    assert app.select_slider(key="head-step").value == -1
    app.switch_page("look_inside/build.py").run()
    assert not app.warning
    app.switch_page("look_inside/walk.py").run()
    assert "untrained" not in said(app)
    app.selectbox(key="model-choice").set_value("draft").run()
    assert "untrained" in said(app)
