"""The walk, through the frame: every step of every family, the link, the questions."""

import re

import numpy as np
import pytest
import torch

from pages.walk import link, source
from tests.inspect.constructed import small
from tests.inspect.walk.test_build import FAMILIES, VARIANTS, experiment, name_of
from tests.pages.counted import SLOW, calls_of
from tests.pages.looking import said
from tests.pages.opening import opened_at
from tfm_core.data.own_picture import to_text
from tfm_core.inspect.attention import own_example
from tfm_core.inspect.errors.answers import steps_of, weights_mark
from tfm_core.inspect.walk.build import walk
from tfm_core.inspect.walk.subject import subject
from tfm_core.inspect.walk.topics import topic_text
from tfm_core.runs.store import RECORDED
from tfm_core.training.checkpoints import save
from tfm_core.training.loop import build


def opened(family="encoder-decoder", **query):
    return opened_at("walk/page.py", draft=experiment(family), **query)


def title(at):
    return at.header[0].value


@pytest.mark.core(2)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_of_every_family_opens_by_next(store, family):
    at = opened(family)
    steps = walk(subject(experiment(family)))
    for number, step in enumerate(steps, 1):
        assert not at.exception
        assert not at.error
        assert title(at) == f"{number} · {step.title}"
        assert "untrained" in said(at)
        _nothing_is_given_away(at, step)
        if step is not steps[-1]:
            at.button(key="walk-right").click().run()
    assert at.query_params["step"] == steps[-1].name
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
    at = opened("vit", step="patches")
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


def test_the_functions_of_a_step_stand_beside_it_with_what_they_give(store):
    at = opened(step="scores")
    codes = [one.value for one in at.code]
    assert any("torch.einsum" in code and "torch.Size([1, 2, 3, 3])" in code for code in codes)
    at.selectbox(key="walk-list").set_value("masking").run()
    assert any(".masked_fill(~mask" in one.value for one in at.code)


def test_the_textbook_example_has_numbers_and_either_kind_of_positions(store):
    at = opened(step="positions", **{"walk-source": "book"})
    assert not at.exception
    assert "(28, 512)" in said(at)  # the learned table is asked for by its size
    assert "a trained row per possible position" in said(at)
    assert "Shapes only" not in said(at)
    assert re.search(r"numbers -?\d\.\d{3}", said(at))
    at.button_group(key="walk-positions").set_value("sinusoidal").run()
    assert not at.exception
    assert "sines and cosines" in said(at)
    assert at.query_params["walk-positions"] in ("sinusoidal", ["sinusoidal"])


def test_a_link_with_the_earlier_words_for_the_textbook_example_opens_it(store):
    at = opened(source="The example of the texts", step="8")
    assert title(at) == "8 · Scores, scaled"
    assert not at.warning
    assert "(128, 8, 28, 64)" in said(at)


def test_the_link_opens_a_step_and_back_goes_to_the_one_before(store):
    at = opened(step="scores")
    assert title(at) == "8 · Scores, scaled"
    at.button(key="walk-left").click().run()
    assert title(at) == "7 · Split into heads"
    assert at.query_params["step"] == "split"


TEXT = {  # number in an older link -> title of the step that it opened
    1: "Token tensors", 2: "Heads must divide d_model", 3: "Masks", 4: "Embedding", 5: "Positions",
    6: "Queries, keys and values", 7: "Split into heads", 8: "Scores, scaled", 9: "Mask",
    10: "Softmax", 11: "Weighted sum of the values", 12: "Merge the heads",
    13: "Add and norm", 14: "Feed-forward, add and norm", 19: "The whole forward pass",
}  # fmt: skip
ENCODER = TEXT | {15: "Encoder stack", 18: "Logits"}
PICTURE = {
    1: "The picture", 2: "Patches", 3: "Patch projection", 5: "Positions",
    6: "Queries, keys and values", 7: "Split into heads", 8: "Scores, scaled", 9: "Softmax",
    10: "Weighted sum of the values", 11: "Merge the heads", 12: "Add and norm",
    13: "Feed-forward, add and norm", 14: "Encoder stack", 15: "Pooling", 16: "Head",
    17: "The whole forward pass",
}  # fmt: skip
OLDER = [
    ("encoder-decoder", {}, ENCODER | {
        16: "Decoder: masked self-attention", 17: "Decoder: cross-attention",
        18: "Decoder stack to logits",
    }),
    ("encoder-only", {}, ENCODER),
    ("encoder-only", {"task": "sentiment"}, ENCODER | {16: "Pooling"}),
    ("decoder-only", {}, TEXT | {18: "Logits"}),
    ("vit", {}, PICTURE),
    ("vit", {"pooling": "cls"}, PICTURE | {4: "CLS token"}),
    ("recurrent", {}, {
        1: "Token tensors", 2: "Embedding", 3: "The encoder reads", 4: "Where the decoder starts",
        5: "Scores", 6: "Mask and softmax", 7: "Context", 8: "The decoder writes",
        9: "The whole forward pass",
    }),
    ("captioner", {}, {
        1: "The picture", 2: "Patches", 3: "Patch projection", 4: "Positions",
        5: "Queries, keys and values", 6: "Split into heads", 7: "Scores, scaled", 8: "Softmax",
        9: "Weighted sum of the values", 10: "Merge the heads", 11: "Add and norm",
        12: "Feed-forward, add and norm", 13: "Encoder stack", 14: "Token tensors of the caption",
        15: "Embedding", 16: "Positions of the words", 17: "Masks",
        18: "Decoder: masked self-attention", 19: "Decoder: cross-attention",
        20: "Decoder: add and norm", 21: "Decoder: feed-forward, add and norm",
        22: "Decoder stack to logits", 23: "The whole forward pass",
    }),
]  # fmt: skip


def test_an_older_link_opens_the_step_that_its_number_stood_for():
    for family, settings, titles in OLDER:
        chosen = experiment(family, **settings)
        names = {step.name: step.title for step in walk(subject(chosen))}
        numbered = link.steps_of(chosen.model)
        found = {n: names[name] for n, name in enumerate(numbered, 1) if name in names}
        assert found == titles, family


def test_an_older_link_opens_where_numbers_had_gaps(store):
    for number, place in ((14, 14), (18, 15), (19, 16)):
        at = opened("decoder-only", step=str(number))
        assert not at.warning
        assert title(at).startswith(f"{place} · ")
    at = opened("decoder-only", step="16")  # there was none: the later of the two beside it
    assert "step is “16” in the link, but must be one of" in said(at)
    assert "; logits is shown." in said(at)
    assert title(at) == "15 · Logits"


def test_another_model_is_opened_at_the_same_step_or_as_far_on(store):
    at = opened("recurrent", step="writing")
    assert title(at) == "8 · The decoder writes"
    at.button_group(key="walk-source").set_value("book").run()
    assert title(at) == "8 · Scores, scaled"  # as far on: it has no step of that name
    at.button_group(key="walk-source").set_value("mine").run()
    assert title(at) == "8 · The decoder writes"


@pytest.mark.parametrize("text", ["99", "9" * 500])
def test_a_step_that_does_not_exist_is_said(store, text):
    at = opened(step=text)
    assert not at.exception
    assert f"step is “{text[:20]}” in the link, but must be one of" in at.warning[0].value


def test_the_step_list_goes_anywhere(store):
    at = opened()
    at.selectbox(key="walk-list").set_value("cross-attention").run()
    assert title(at) == "17 · Decoder: cross-attention"
    assert at.query_params["step"] == "cross-attention"


def test_the_example_of_the_texts_is_one_press_away(store):
    at = opened(step="8")
    at.button_group(key="walk-source").set_value("book").run()
    assert not at.exception
    assert "(128, 8, 28, 64)" in said(at)
    assert "(128, 8, 28, 28)" not in said(at)
    at.button[-1].click().run()  # Show the answer
    assert "(128, 8, 28, 28)" in said(at)
    assert "One pair's numbers" in said(at)


def test_a_question_counts_its_first_answer(store):
    at = opened(step="8")
    steps = {step.name: step for step in walk(subject(experiment("encoder-decoder")))}
    right = steps["scores"].question
    wrong = next(option for option in right.options if option != right.answer)
    at.radio[0].set_value(wrong)
    at.button[-2].click().run()
    assert f"Not {wrong}. {right.why_not(wrong)}" in said(at)
    at.radio[0].set_value(right.answer)
    at.button[-2].click().run()
    assert "Right." in at.success[0].value
    assert "0 of 1 right" in said(at)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_has_its_words(family):
    for variant in (one for one in VARIANTS if one[0] == family):
        steps = walk(subject(experiment(family, **variant[1])))
        names = {step.name for step in steps}
        for step in steps:
            assert step.topics, name_of(variant)
            for topic in step.topics:
                assert set(re.findall("{step:([^}]*)}", topic_text(topic))) <= names, name_of(
                    variant
                )


def test_a_trained_model_is_said_to_be_one(store):
    chosen = small(experiment("encoder-decoder"))
    run = store.create(chosen)
    save(build(chosen), run.folder / "checkpoints" / "last")
    at = opened(step="19", run=run.id)
    assert not at.exception
    assert "Weights of step" in said(at)


def test_a_run_is_walked_through_at_any_step_and_with_your_own_sentence(store, monkeypatch):
    monkeypatch.setattr(store, "recorded", RECORDED)
    at = opened(run="recorded-korean", step="whole")
    run = store.get("recorded-korean")
    first, *_later, last = steps_of(run)
    assert f"Weights of step {last:,}" in said(at)
    for step, asked in ((first, str(first)), (last, None)):
        at.session_state["walk-weights"] = step
        at.run()
        assert not at.exception
        assert at.query_params.get("weights") in (asked, [asked])
        assert f"Weights of step {step:,}" in said(at)
    at.text_input(key="walk-own-text").set_value("the teacher bought a book").run()
    assert not at.exception
    assert "1: the teacher bought a book" in said(at)
    assert at.query_params["walk-text"] == "the teacher bought a book"
    at.text_input(key="walk-own-text").set_value("the dragon bought a book").run()
    assert not at.exception
    assert "dragon" in at.error[0].value
    assert title(at).endswith("The whole forward pass")


def test_a_part_is_knocked_out_by_the_link_and_put_back(store, monkeypatch):
    monkeypatch.setattr(store, "recorded", RECORDED)
    at = opened(run="recorded-korean", step="whole", out="decoder.3.cross,decoder.9.cross")
    assert not at.exception
    assert at.query_params["out"] == "decoder.3.cross"
    run = store.get("recorded-korean")
    mark = weights_mark(run, run.checkpoint_step)
    whole, without = (
        source._trained(str(run.folder), run.checkpoint_step, mark, "", out)
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


def test_a_drawn_digit_is_walked_through_as_the_model_reads_it(store, monkeypatch):
    monkeypatch.setattr(store, "recorded", RECORDED)
    run = store.get("recorded-digits")
    digit, _notes = own_example.read_picture(run, DRAWING)
    at = opened(run=run.id, step="whole", **{"walk-digit": f"picture-{to_text(digit)}"})
    assert not at.exception
    assert "Your digit." in said(at)
    mark = weights_mark(run, run.checkpoint_step)
    own = f"picture-{to_text(digit)}"
    assert at.query_params["walk-digit"] in (own, [own])
    made = source._trained(str(run.folder), run.checkpoint_step, mark, own, ())
    (logits,) = made.cache["head.logits"]
    read = own_example.look_at_picture(run, digit).probabilities
    np.testing.assert_allclose(logits.softmax(-1).numpy(), read, atol=1e-5)


@pytest.mark.parametrize("text", ["picture-eJw", "picture-", "seven", "picture-" + "a" * 5000])
def test_a_drawing_that_a_link_says_wrong_is_said_and_the_example_shown(store, monkeypatch, text):
    monkeypatch.setattr(store, "recorded", RECORDED)
    at = opened(run="recorded-digits", **{"walk-digit": text})
    assert not at.exception
    assert len(at.warning) + len(at.error) == 1
    assert "Your digit." not in said(at)
    assert "Picture 1: 0" in said(at)


def test_a_step_without_weights_is_said_and_the_nearest_one_shown(store, monkeypatch):
    monkeypatch.setattr(store, "recorded", RECORDED)
    at = opened(run="recorded-korean", weights="7")
    assert not at.exception
    assert any("No weights at step 7" in warning.value for warning in at.warning)
    at = opened(run="recorded-korean", weights="soon")
    assert any("; the newest is shown." in warning.value for warning in at.warning)
    at = opened(run="recorded-korean", weights="newest")
    assert not at.warning


def test_a_model_is_built_and_walked_through_once_for_all_steps(store):
    at = opened(step="10")
    with calls_of(*SLOW) as calls:
        for name in ("weighted-sum", "scores", "softmax"):
            at.selectbox(key="walk-list").set_value(name).run()
    assert not at.exception
    assert not calls


def test_a_link_to_a_model_of_no_run_says_what_is_shown_instead():
    for query in ({"show": "run"}, {"show": "run", "run": "no-such-run"}):
        at = opened(**query)
        assert not at.exception
        sentences = [warning.value for warning in at.warning]
        assert sentences[-1].endswith("Showing the configuration being edited.")
        assert not any("must be one of" in sentence for sentence in sentences)


def test_ids_carry_their_words_and_the_slider_over_examples_is_called_that(store):
    at = opened("encoder-decoder", step="tokens")
    assert [one.label for one in at.slider] == ["Examples"]
    assert at.slider[0].value == (1, at.slider[0].max)
    assert re.search(r"numbers <bos>|numbers \\<bos|numbers .*bos.* 1, ", said(at))
    (figure,) = [part for part in at.get("bidi_component") if "walk-map" in part.proto.id]
    assert "bos" in figure.proto.json
    at.selectbox(key="walk-list").set_value("embedding").run()
    assert "`ids` token ids" in said(at)
    assert "`ids` ids" not in said(at)
