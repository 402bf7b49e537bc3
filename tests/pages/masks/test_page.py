"""The mask lab, through the frame."""

import json

from pages.components.mask_editor import valid_edit
from tests.pages.counted import SLOW, calls_of
from tests.pages.looking import part_of, said
from tests.pages.made_runs import made_run, with_checkpoint
from tfm_core.presets import PRESETS

PAGE = "masks/page.py"


def sent(app):
    return json.loads(part_of(app, "mask_editor").json)


def test_the_code_to_copy_makes_the_mask_that_is_drawn_and_long_sentences_are_refused(open_page):
    app = open_page(PAGE)
    app.button_group(key="masks-section").set_value("code").run()
    names = {}
    exec(app.code[0].value, names)
    assert names["mask"].tolist() == sent(app)["mask"]
    app = open_page(PAGE)
    app.text_input(key="masks-text-own-one").set_value("a " * 50).run()
    assert "tokens, not 50" in app.error[0].value


def test_a_change_builds_and_loads_no_model(open_page):
    app = open_page(PAGE)
    with calls_of(*SLOW) as calls:
        for n in (1, 3, 0):
            app.slider(key="masks-pad-combined").set_value(n).run()
    assert not calls
    assert sent(app)["key"] == ["the", "cat", "sees", "the", "small", "dog"]


def test_the_current_runs_model_gives_the_scores_of_words_it_knows(recorded, open_page):
    app = open_page(PAGE, run="recorded-korean")
    assert "Real projections: layer 1, head 1 of" in said(app)
    assert "Decoder self-attention (causal). The tokens are its answer to “" in said(app)
    assert sent(app)["query"][0] == "<bos>"
    before = sent(app)["scores"]
    app.selectbox(key="masks-head-4").set_value(2).run()
    assert sent(app)["scores"] != before
    app.button_group(key="masks-kind").set_value("cross").run()
    assert sent(app)["query"][0] == "<bos>"
    assert "Real projections" in said(app)
    app = open_page(PAGE, run="recorded-korean")
    app.button_group(key="masks-kind").set_value("padding").run()
    app.text_input(key="masks-text-run-one").set_value("colourless green ideas").run()
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


def test_a_captioner_says_that_there_is_no_picture_to_write_about(store, open_page):
    run = made_run(store, experiment=PRESETS["captions"].experiment)
    with_checkpoint(run)
    app = open_page(PAGE, run=run.id)
    assert "Its words describe a picture, which is missing here." in said(app)


def test_any_run_on_words_can_be_picked_and_the_link_keeps_it(recorded, open_page, store):
    made_run(store, name="Without weights")
    app = open_page(PAGE, mask="causal")
    picker = app.selectbox(key="masks-run")
    assert picker.value is None
    assert "The run “English to Korean, recorded”" in picker.options
    assert not {"The run “Without weights”", "The run “Digits, recorded”"} & set(picker.options)
    picker.set_value("recorded-korean").run()
    assert app.query_params["run"] == "recorded-korean"
    assert "Real projections" in said(app)
    again = open_page(PAGE, mask="causal", run="recorded-korean")
    assert again.selectbox(key="masks-run").value == "recorded-korean"
