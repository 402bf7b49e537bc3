"""Attention by hand, through the frame: its stages, its link, its mask, its learning."""

import json
import re

import pytest

from pages.components.pickers import valid_pick
from tests.pages.looking import part_of, said
from tfm_core.inspect.by_hand import attention
from tfm_core.plots.heads import by_hand as plots
from tfm_core.plots.heads.by_hand import Pick
from tfm_core.plots.sheet import described

PAGE = "by_hand/page.py"
LINK = {
    "words": "old tree",
    "numbers-one": "2",
    "vectors": "1,2;0.5,-1",
    "mask": "Causal",
}
ONE_HOT = "1,0,0;0,1,0;0,0,1"
STAGES = {
    "Words": "one-hot",
    "Projections": "projections",
    "Heads": "heads",
    "Six ways": "forms",
}


def sheets(app):
    """Return the boards of every sheet by name, as rows of texts."""
    found = {}
    for part in app.get("bidi_component"):
        if part.proto.component_name == "number_sheet":
            for line in json.loads(part.proto.json)["lines"]:
                for board in line["boards"]:
                    rows = [[cell[0] for cell in row] for row in board["panels"][0]["cells"]]
                    found[board["name"] or board["title"]] = rows
    return found


def arithmetic(app):
    (part,) = [
        part.proto
        for part in app.get("bidi_component")
        if part.proto.component_name == "number_sheet" and "hand-sheet" in part.proto.id
    ]
    return [text for line in json.loads(part.json)["lines"] for text in line["arithmetic"]]


def test_every_stage_is_drawn(open_page):
    for stage in STAGES:
        app = open_page(PAGE, stage=stage)
        assert not app.exception
        assert not app.error
        assert sheets(app)
        assert "Predict:" in said(app)


def test_the_page_opens_on_words_that_are_alike_in_part_and_writes_their_score_out(open_page):
    app = open_page(PAGE)
    first = "q(AI) · k(love) = 0.00 × 0.00 + 0.50 × 0.75 + 0.75 × 0.50 = 0.75"
    assert arithmetic(app)[0].startswith(first)
    x = attention.first_vectors(3, 3)
    scores = x @ x.T
    assert sheets(app)["scores"] == [[f"{score:.2f}" for score in row] for row in scores.tolist()]


def test_three_one_hot_words_attend_mostly_to_themselves(open_page):
    app = open_page(PAGE)
    app.button(key="hand-one-hot").click().run()
    boards = sheets(app)
    assert boards["scores"] == [
        ["1.00", "0.00", "0.00"], ["0.00", "1.00", "0.00"], ["0.00", "0.00", "1.00"]
    ]  # fmt: skip
    assert boards["weights"][0] == ["0.47", "0.26", "0.26"]
    app.toggle(key="scale").set_value(False).run()
    assert sheets(app)["weights"][0] == ["0.58", "0.21", "0.21"]


def test_a_link_carries_words_and_vectors(open_page):
    app = open_page(PAGE, **LINK)
    assert sheets(app)["query"] == [["1.00", "2.00"], ["0.50", "−1.00"]]
    assert sheets(app)["mask"] == [["✓", "✕"], ["✓", "✓"]]
    assert "1,2;0.5,-1" in app.query_params["vectors"]


def test_a_word_between_others_leaves_them_their_vectors_and_the_link_has_all(open_page):
    app = open_page(PAGE, **LINK)
    app.text_input(key="words").set_value("old green tree").run()
    query = sheets(app)["query"]
    assert [query[0], query[2]] == [["1.00", "2.00"], ["0.50", "−1.00"]]
    assert sheets(open_page(PAGE, **linked(app)))["query"] == query


@pytest.mark.parametrize(
    ("text", "sentence"), [("1,2;3", "has 2 vectors for 3 words"), ("a,b;c", "vectors for 3")]
)
def test_vectors_that_do_not_fit_are_said_and_one_hot_is_used(open_page, text, sentence):
    app = open_page(PAGE, vectors=text)
    assert not app.exception
    assert sentence in app.warning[0].value
    assert sheets(app)["query"][0] == ["1.00", "0.00", "0.00"]


@pytest.mark.parametrize(
    ("text", "sentence"), [("one", "2 to 6 words"), ("a b c d e f g", "2 to 6 words")]
)
def test_words_that_do_not_fit_get_their_sentence_and_stay(open_page, text, sentence):
    app = open_page(PAGE)
    app.text_input(key="words").set_value(text).run()
    assert sentence in app.error[0].value
    assert app.text_input(key="words").value == text


def test_another_number_is_written_out_when_it_is_picked(open_page):
    app = open_page(PAGE)
    app.selectbox(key="hand-at-query").set_value(0).run()
    app.selectbox(key="hand-at-key").set_value(0).run()
    assert arithmetic(app)[0].startswith("q(I) · k(I) = 1.00 × 1.00")
    assert "weight = 1.00 / 2.1228 = 0.4711" in arithmetic(app)


def test_drawing_new_vectors_and_going_back_to_one_hot(open_page):
    app = open_page(PAGE)
    assert "vectors" not in app.query_params
    before = sheets(app)["query"]
    app.button(key="hand-random").click().run()
    assert sheets(app)["query"] != before
    assert "vectors" in app.query_params
    app.button(key="hand-one-hot").click().run()
    assert sheets(app)["query"] == [
        ["1.00", "0.00", "0.00"], ["0.00", "1.00", "0.00"], ["0.00", "0.00", "1.00"]
    ]  # fmt: skip
    assert app.query_params["vectors"] in (ONE_HOT, [ONE_HOT])


def test_the_answer_brings_the_comparison(open_page):
    app = open_page(PAGE)
    assert "Not divided" not in sheets(app)
    app.button[-1].click().run()  # Show the answer
    app.run()
    assert sheets(app)["Not divided"][0] == ["0.58", "0.21", "0.21"]


def test_without_the_scale_sheet_title_and_question_agree(open_page):
    app = open_page(PAGE, vectors=ONE_HOT)
    assert "Answer to see both side by side." in said(app)
    app.toggle(key="scale").set_value(False).run()
    boards = sheets(app)
    assert "attends to “AI” with 0.58. How much after dividing the scores by" in said(app)
    assert boards["weights"][2][2] == "0.58"
    sent = " ".join(part.proto.json for part in app.get("bidi_component"))
    assert "Scaled scores" not in sent
    assert "Not divided, and mask" in sent
    assert "0.47" in app.radio[0].options


def test_padding_comes_behind_the_words_and_hides_none_of_them(open_page):
    app = open_page(PAGE, mask="padding", vectors=ONE_HOT)
    boards = sheets(app)
    assert boards["query"] == [
        ["1.00", "0.00", "0.00"], ["0.00", "1.00", "0.00"], ["0.00", "0.00", "1.00"],
        ["0.00", "0.00", "0.00"],
    ]  # fmt: skip
    assert boards["mask"] == [["✓", "✓", "✓", "✕"]] * 4
    assert boards["weights"][2] == ["0.26", "0.26", "0.47", "0.00"]
    lesson = open_page(PAGE, stage="projections", mask="padding")
    assert not lesson.error
    assert lesson.multiselect(key="wanted-3").value == ["3-2"]  # AI → love, as without padding


def test_all_stages_of_the_lesson_stand_side_by_side_at_the_chosen_step(open_page):
    app = open_page(PAGE, stage="projections")
    for step in (0, 30):
        app.slider(key="learned").set_value(step).run()
        boards = sheets(app)
        assert boards["Weights"] == boards["weights"]
        assert boards["Scaled scores"] == boards["scaled"]
        assert boards["Output"] == boards["output"]


def test_learning_changes_every_number_below(open_page):
    app = open_page(PAGE, stage="Projections")
    drawn = sheets(app)["weights"]
    app.slider(key="learned").set_value(30).run()
    assert not app.exception
    learned = sheets(app)["weights"]
    assert float(learned[2][1]) > max(0.95, float(drawn[2][1]))
    app.button(key="hand-keep").click().run()
    app.slider(key="learned").set_value(0).run()
    assert sheets(app)["weights"] == learned


def test_new_matrices_give_new_numbers_and_the_same_seed_the_same(open_page):
    app = open_page(PAGE, stage="Heads")
    first = sheets(app)["final"]
    app.button(key="hand-draw-new").click().run()
    assert sheets(app)["final"] != first
    assert sheets(open_page(PAGE, stage="Heads"))["final"] == first


def test_a_target_behind_the_mask_is_said(open_page):
    app = open_page(PAGE, stage="Projections", mask="Causal")
    app.multiselect(key="wanted-3").set_value(["1-3"]).run()
    assert "mask forbids word 1 to attend to word 3" in app.error[0].value
    assert sheets(app)["weights"]


def test_a_width_without_equal_heads_has_one_number_each(open_page):
    app = open_page(PAGE, stage="Heads")
    app.button_group(key="numbers-heads").set_value(5).run()
    assert not app.exception
    assert sheets(app)["query"][0][1:] == []


def test_all_six_forms_agree_and_say_so(open_page):
    app = open_page(PAGE, stage="Six ways")
    assert "All 6 agree" in app.success[0].value
    assert "w.chunk(n_heads, dim=1)" in app.code[0].value


def test_what_is_no_click_on_a_table_is_dropped():
    for value in (
        None, {}, {"board": "x", "cell": [0, 0]}, {"board": "y", "cell": [2, 0]},
        {"board": "y", "cell": ["0", 0]}, {"board": "", "cell": [0, 0]}, {"board": "y", "cell": 3},
    ):  # fmt: skip
        assert valid_pick(value, {"y": (2, 3), "": (2, 3)}) is None, value
    assert valid_pick({"board": "y", "cell": [1, 2]}, {"y": (2, 3)}) == ("y", 1, 2)


def test_the_sheet_is_sent_as_text(open_page):
    app = open_page(PAGE, words="<b> love")
    assert not app.exception
    assert "<b>" in part_of(app, "number_sheet").json


def test_words_are_never_read_as_markdown(open_page):
    app = open_page(PAGE, words=":red[a] **b** $c$")
    assert not app.exception
    assert "“\\$c\\$”" in said(app)


def test_vectors_stay_when_the_page_is_left(open_page):
    app = open_page(PAGE, **LINK)
    kept = sheets(app)["query"]
    app.switch_page("masks/page.py").run()
    app.switch_page(PAGE).run()
    app.text_input(key="words").set_value("old tree").run()
    app.button_group(key="numbers-one").set_value(2).run()
    assert sheets(app)["query"] == kept


BY_HAND = {
    "stage": "heads",
    "words": "old tree",
    "numbers-heads": "2",
    "wq": "0,1;1,0",
    "wo": "2,-0.5;0.25,1",
    "turned": "1-2,2-1",
    "at": "1-2-2",
    "head": "2",
}


def linked(app):
    """Return what the address of the page says."""
    said = dict(app.query_params)
    return {name: value[0] if isinstance(value, list) else value for name, value in said.items()}


def test_a_link_holds_matrices_clicks_on_the_mask_and_what_is_written_out(open_page):
    app = open_page(PAGE, **BY_HAND)
    assert not app.exception
    assert not app.warning
    assert sheets(app)["mask"] == [["✓", "✕"], ["✕", "✓"]]
    query, final = sheets(app)["query"], sheets(app)["final"]
    assert query == [["0.75"], ["0.50"]]  # the second column of X · W_Q
    link = linked(app)
    assert (
        link.items()
        >= {name: BY_HAND[name] for name in ("wq", "wo", "turned", "at", "head")}.items()
    )
    again = open_page(PAGE, **link)
    assert sheets(again)["final"] == final
    assert arithmetic(again) == arithmetic(app)
    assert sheets(open_page(PAGE, **{**BY_HAND, "wo": "1,0;0,1"}))["final"] != final


@pytest.mark.parametrize(
    ("query", "text", "sentence"),
    [
        ("wq", "1,2;3", "W_Q in the link is not 4 rows of 4 numbers"),
        ("wv", ";".join(["1,2,3,11"] * 4), "11 is not between"),
        ("turned", "1-4", "“1-4” in the link is not 2 indices (1 to 3, 1 to 3)"),
        ("at", "1-1", "“1-1” in the link is not 3 indices"),
        ("head", "7", "head is “7” in the link, but must be one of 1, 2"),
    ],
)
def test_what_a_link_asks_for_and_cannot_be_gets_a_sentence(open_page, query, text, sentence):
    usual = sheets(open_page(PAGE, stage="heads"))
    app = open_page(PAGE, stage="heads", **{query: text})
    assert not app.exception
    assert sentence in " ".join(warning.value for warning in app.warning).replace("\\", "")
    assert sheets(app) == usual
    assert query not in app.query_params


def test_a_click_on_the_mask_and_learned_matrices_go_into_the_link(open_page):
    app = open_page(PAGE, stage="projections")
    assert not {"wq", "wk", "wv", "turned", "wanted"} & set(app.query_params)
    app.slider(key="learned").set_value(30).run()
    app.button(key="hand-keep").click().run()
    app.slider(key="learned").set_value(0).run()
    kept = sheets(app)["weights"]
    assert {"wq", "wk"} < set(linked(app))
    assert "wv" not in linked(app)  # nothing learns it
    again = open_page(PAGE, **linked(app))
    assert sheets(again)["weights"] == kept
    app.button_group(key="hand-stage").set_value("one-hot").run()
    assert "wq" not in app.query_params
    app.button_group(key="hand-stage").set_value("projections").run()
    assert sheets(app)["weights"] == kept


def test_the_wanted_pairs_stand_in_the_link_by_place(open_page):
    app = open_page(PAGE, stage="projections")
    app.multiselect(key="wanted-3").set_value(["1-3", "2-2"]).run()
    assert linked(app)["wanted"] == "1-3,2-2"
    assert open_page(PAGE, stage="projections", wanted="1-3,2-2").multiselect(
        key="wanted-3"
    ).value == ["1-3", "2-2"]
    earlier = open_page(PAGE, **{"stage": "projections", "wanted-3": "I → AI"})
    assert earlier.multiselect(key="wanted-3").value == ["1-3"]
    wrong = open_page(PAGE, stage="projections", wanted="1-9")
    assert "wanted is “1-9” in the link" in wrong.warning[0].value
    assert wrong.multiselect(key="wanted-3").value == ["3-2"]


def test_every_word_in_the_tables_is_put_into_the_language_of_the_page():
    def say(words):
        return f"«{words}»"

    x = attention.one_hot(3, 4)
    allowed = attention.mask_of("causal", 3)
    given = attention.random_matrices(4, 1), x, allowed
    heads = attention.multi_head(x, given[0], 2, allowed)
    words, pick = ("7", "8", "9"), Pick(0, 1, 0)
    lines = [
        *plots.attention_lines(heads.heads[0], words, pick, ("",) * 4, ("",) * 4, say=say),
        plots.heads_line(heads, words, "", "", say),
        plots.joined_line(heads, given[0].out, words, pick, "", "", say),
        plots.comparison_line(heads.heads[0], heads.heads[1], words, "", "", say),
    ]
    symbols = r"e(?=[+-]\d)|W_[A-Z]|√|Q?Kᵀ|\b[QKVqk]\b|e\^|[\W\d_]"
    for line in described(lines, {}):
        for board in line["boards"]:
            panel = board["panels"][0]
            cells = [cell for row in panel["cells"] for cell in row]
            said = [board["title"], board["sign"], *board["facts"], *panel["columns"],
                    panel["row_title"], panel["column_title"], *line["arithmetic"],
                    *(text for cell in cells for text in (cell[0], cell[2]))]  # fmt: skip
            for text in said:
                rest = re.sub(symbols, "", re.sub("«[^»]*»", "", text))
                assert rest == "", text
