"""The mask lab, through the frame."""

from pages.components.pickers import valid_edit
from tests.pages.counted import SLOW, calls_of
from tests.pages.looking import said, sent

PAGE = "look_inside/masks.py"


def panel(app, index):
    """Return one of the five maps: scores, mask, masked scores, weights, output."""
    (sheet,) = sent(app, "number_sheet", "masks-editor")
    return sheet["lines"][0]["boards"][index]["panels"][0]


def test_the_code_to_copy_makes_the_mask_that_is_drawn_and_long_sentences_are_refused(open_page):
    app = open_page(PAGE)
    app.button_group(key="masks-trap").set_value("code").run()
    names = {}
    exec(app.code[0].value, names)
    mask = [[value == "1" for value in row] for row in panel(app, 1)["values"]]
    assert names["mask"].tolist() == mask
    app = open_page(PAGE)
    app.text_input(key="masks-own-one-text").set_value("a " * 50).run()
    assert "tokens, not 50" in app.error[0].value


def test_a_change_builds_and_loads_no_model(open_page):
    app = open_page(PAGE)
    with calls_of(*SLOW) as calls:
        for n in (1, 3, 0):
            app.slider(key="masks-combined-pad").set_value(n).run()
    assert not calls
    assert panel(app, 0)["columns"] == ["the", "cat", "sees", "the", "small", "dog"]


def test_the_current_runs_model_gives_the_scores_of_words_it_knows(recorded, open_page):
    app = open_page(PAGE, run="recorded-korean")
    assert "Real projections: layer 1, head 1 of" in said(app)
    assert "Decoder self-attention (causal). The tokens are its answer to “" in said(app)
    assert panel(app, 0)["rows"][0] == "<bos>"
    before = panel(app, 0)["values"]
    app.selectbox(key="masks-4-head").set_value(2).run()
    assert panel(app, 0)["values"] != before
    app.button_group(key="masks-mask").set_value("cross").run()
    assert panel(app, 0)["rows"][0] == "<bos>"
    assert "Real projections" in said(app)
    app = open_page(PAGE, run="recorded-korean")
    app.button_group(key="masks-mask").set_value("padding").run()
    app.text_input(key="masks-recorded-korean-0-one-text").set_value("colourless green ideas").run()
    assert "Not from the current run: " in said(app)
    assert "“colourless” is not a word" in said(app)
    assert "random embeddings" in said(app)


def test_what_is_no_click_on_this_mask_is_dropped():
    for value in (
        None,
        [],
        {"version": "other", "cells": []},
        {"version": "v", "cells": [[0]]},
        {"version": "v", "cells": [[0, 3]]},
        {"version": "v", "cells": [[True, 0]]},
        {"version": "v", "cells": [["0", 0]]},
        {"version": "v", "cells": [[0, 0]] * 7},
    ):
        assert valid_edit(value, "v", (2, 3)) is None, value
    assert valid_edit({"version": "v", "cells": [[1, 2], [1, 2]]}, "v", (2, 3)) == ((1, 2),)


def test_a_captioner_says_that_there_is_no_picture_to_write_about(recorded, open_page):
    app = open_page(PAGE, run="recorded-captions")
    assert "Its words describe a picture, which is missing here." in said(app)


def test_cold_it_opens_on_a_recorded_run_whose_step_and_example_the_head_chooses(
    recorded, open_page
):
    app = open_page(PAGE, mask="causal")
    assert "Real projections" in said(app)
    before = panel(app, 0)["values"]
    app.select_slider(key="head-step").set_value(0).run()
    assert panel(app, 0)["values"] != before
    assert "at step 0 ·" in said(app)
    app.selectbox(key="head-example").set_value("2").run()
    shown = panel(app, 0)["rows"]
    assert shown[1:] == recorded.get("recorded-korean").probe().items[1]["tgt"]
    app.toggle(key="masks-seeded").set_value(True).run()
    assert "The scores come from random embeddings." in said(app)
    assert "random embeddings" in said(open_page(PAGE, run="recorded-digits"))
