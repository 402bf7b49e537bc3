"""Attention by hand, through the frame: its stages, its link, its mask, its learning."""

import re
from string import Formatter

import pytest

from pages.components.pickers import valid_pick
from tests.pages.looking import sent
from tfm_core.inspect import by_hand
from tfm_core.plots.heads import by_hand as plots
from tfm_core.plots.heads.by_hand import Pick
from tfm_core.plots.sheet import described
from tfm_core.sentences import Sentence, translated

PAGE = "learn/by_hand.py"
LINK = {"words": "old tree", "numbers-one": "2", "vectors": "1,2;0.5,-1", "mask": "causal"}
ONE_HOT = "1,0,0;0,1,0;0,0,1"


def sheets(app):
    """Return the boards of every sheet by name, as rows of texts."""
    lines = [line for sheet in sent(app, "number_sheet") for line in sheet["lines"]]
    return {
        board["name"] or board["title"]: texts(board["panels"][0])
        for line in lines
        for board in line["boards"]
    }


def texts(panel):
    if panel["states"]:
        return [[panel["states"][int(value)][0] for value in row] for row in panel["values"]]
    return panel["texts"]


def arithmetic(app):
    (sheet,) = sent(app, "number_sheet", "hand-sheet")
    return [text for line in sheet["lines"] for text in line["arithmetic"]]


def test_words_are_alike_in_part_and_keep_their_vectors_between_others(open_page):
    app = open_page(PAGE)
    first = "q(AI) · k(love) = 0.00 × 0.00 + 0.50 × 0.75 + 0.75 × 0.50 = 0.75"
    assert arithmetic(app)[0].startswith(first)
    x = by_hand.first_vectors(3, 3)
    scores = x @ x.T
    assert sheets(app)["scores"] == [[f"{score:.2f}" for score in row] for row in scores.tolist()]
    app = open_page(PAGE, **LINK)
    app.text_input(key="hand-words").set_value("old green tree").run()
    query = sheets(app)["query"]
    assert [query[0], query[2]] == [["1.00", "2.00"], ["0.50", "−1.00"]]
    assert sheets(open_page(PAGE, **linked(app)))["query"] == query
    app = open_page(PAGE, vectors="1,2;3")
    assert "not 3 rows of 3 numbers" in app.warning[0].value
    assert sheets(app)["query"][0] == ["1.00", "0.00", "0.00"]
    app = open_page(PAGE)
    app.text_input(key="hand-words").set_value("one").run()
    assert "2 to 6 words" in app.error[0].value
    assert app.text_input(key="hand-words").value == "one"


def test_drawn_vectors_give_way_to_one_hot_words_that_attend_mostly_to_themselves(open_page):
    app = open_page(PAGE)
    assert "vectors" not in app.query_params
    before = sheets(app)["query"]
    app.button(key="hand-random").click().run()
    assert sheets(app)["query"] != before
    assert "vectors" in app.query_params
    app.button(key="hand-one-hot").click().run()
    assert sheets(app)["query"] == [
        ["1.00", "0.00", "0.00"],
        ["0.00", "1.00", "0.00"],
        ["0.00", "0.00", "1.00"],
    ]
    assert app.query_params["vectors"] in (ONE_HOT, [ONE_HOT])
    boards = sheets(app)
    assert boards["scores"] == boards["query"]
    assert boards["weights"][0] == ["0.47", "0.26", "0.26"]
    app.toggle(key="hand-scale").set_value(False).run()
    assert sheets(app)["weights"][0] == ["0.58", "0.21", "0.21"]


def test_the_answer_brings_the_comparison_and_vectors_stay(open_page):
    app = open_page(PAGE)
    assert "Not divided" not in sheets(app)
    app.button[-1].click().run()  # Show the answer
    app.run()
    assert sheets(app)["Not divided"][0] == ["0.58", "0.21", "0.21"]
    app = open_page(PAGE, **LINK)
    kept = sheets(app)["query"]
    app.switch_page("look_inside/masks.py").run()
    app.switch_page(PAGE).run()
    app.text_input(key="hand-words").set_value("old tree").run()
    app.button_group(key="hand-numbers_one").set_value("2").run()
    assert sheets(app)["query"] == kept


def test_padding_comes_behind_the_words_and_new_matrices_give_new_numbers(open_page):
    app = open_page(PAGE, mask="padding", vectors=ONE_HOT)
    boards = sheets(app)
    assert boards["query"] == [
        ["1.00", "0.00", "0.00"],
        ["0.00", "1.00", "0.00"],
        ["0.00", "0.00", "1.00"],
        ["0.00", "0.00", "0.00"],
    ]
    assert boards["mask"] == [["✓", "✓", "✓", "✕"]] * 4
    assert boards["weights"][2] == ["0.26", "0.26", "0.47", "0.00"]
    lesson = open_page(PAGE, stage="projections", mask="padding")
    assert not lesson.error
    assert lesson.multiselect(key="hand-3-wanted").value == ["3-2"]  # AI → love, as without padding
    app = open_page(PAGE, stage="heads")
    first = sheets(app)["final"]
    app.button(key="hand-draw-new").click().run()
    assert sheets(app)["final"] != first
    assert sheets(open_page(PAGE, stage="heads"))["final"] == first
    last = open_page(PAGE, stage="heads", draw="9999")
    last.button(key="hand-draw-new").click().run()
    assert last.number_input(key="hand-draw").value == 0
    app.button_group(key="hand-numbers_heads").set_value("5").run()
    assert sheets(app)["query"][0][1:] == []


def test_what_is_no_click_on_a_table_is_dropped():
    for value in (
        None,
        {},
        {"board": "x", "cell": [0, 0]},
        {"board": "y", "cell": [2, 0]},
        {"board": "y", "cell": ["0", 0]},
        {"board": "", "cell": [0, 0]},
        {"board": "y", "cell": 3},
    ):
        assert valid_pick(value, {"y": (2, 3), "": (2, 3)}) is None, value
    assert valid_pick({"board": "y", "cell": [1, 2]}, {"y": (2, 3)}) == ("y", 1, 2)


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


def test_a_link_holds_matrices_clicks_and_what_was_learned(open_page):
    app = open_page(PAGE, **BY_HAND)
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
    app = open_page(PAGE, stage="projections")
    assert not {"wq", "wk", "wv", "turned", "wanted"} & set(app.query_params)
    app.slider(key="hand-learned").set_value(30).run()
    app.button(key="hand-keep").click().run()
    app.slider(key="hand-learned").set_value(0).run()
    kept = sheets(app)["weights"]
    assert float(kept[2][1]) > 0.95
    assert {"wq", "wk"} < set(linked(app))
    assert "wv" not in linked(app)  # nothing learns it
    again = open_page(PAGE, **linked(app))
    assert sheets(again)["weights"] == kept
    app.button_group(key="hand-stage").set_value("one-hot").run()
    assert "wq" not in app.query_params
    app.button_group(key="hand-stage").set_value("projections").run()
    assert sheets(app)["weights"] == kept


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
    assert sentence in " ".join(warning.value for warning in app.warning).replace("\\", "")
    assert sheets(app) == usual
    assert query not in app.query_params


def test_every_word_in_the_tables_is_put_into_the_language_of_the_page():
    def say(sentence):
        parts = []
        for literal, name, _form, _conversion in Formatter().parse(sentence.template):
            value = sentence.values[name] if name else ""
            parts += [f"«{literal}»", say(value) if isinstance(value, Sentence) else str(value)]
        return "".join(parts)

    x = by_hand.one_hot(3, 4)
    matrices = by_hand.random_matrices(4, 1)
    heads = by_hand.multi_head(x, matrices, 2, by_hand.mask_of("causal", 3))
    words, pick = ("7", "8", "9"), Pick(0, 1, 0)
    lines = [
        *plots.attention_lines(heads.heads[0], words, pick),
        plots.joined_line(heads, matrices.out, words, pick),
    ]
    symbols = r"\{\w+\}|e(?=[+-]\d)|W_[A-Z]|√|Q?Kᵀ|\b[QKVqk]\b|e\^|[\W\d_]"
    for line in translated(described(lines, {}), say):
        for board in line["boards"]:
            panel = board["panels"][0]
            cells = [text for row in [*panel["texts"], *panel["states"]] for text in row]
            said = [
                board["title"],
                board["sign"],
                *board["facts"],
                *panel["columns"],
                panel["row_title"],
                panel["column_title"],
                *line["arithmetic"],
                *cells,
            ]
            for text in said:
                rest = re.sub(symbols, "", re.sub("«[^»]*»", " ", text))
                assert rest == "", text
