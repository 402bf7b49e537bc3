"""Pages on runs of own data: unknown words are marked, and a removed set leaves the model."""

import pytest

from tests.pages.looking import said
from tests.pages.opening import opened_at
from tests.runs.test_own_runs import remove_set, trained
from tfm_core.data.user_data import sets

PAGE, TEXT = "try_it/page.py", "write-text"


@pytest.fixture(autouse=True)
def _beside_the_runs(store):
    with sets.below(store.root):
        yield


def test_unknown_words_are_marked_and_a_removed_set_changes_nothing(store):
    run = trained(store, "pairs")
    app = opened_at(PAGE, run=run.id)
    app.text_input(key=TEXT).set_value("WORD1 and zebra").run()
    assert not app.warning
    assert "`<unk>`: “zebra”" in said(app)
    remove_set(store, run)
    again = opened_at(PAGE, run=run.id)
    again.text_input(key=TEXT).set_value("WORD1 and zebra").run()
    assert not again.error
    assert again.button(key="write-surprise").disabled
    assert "`<unk>`: “zebra”" in said(again)
    opened_at(PAGE, run=run.id, text="word1 and zebra", show="truth")


def test_scores_of_own_pairs_hold_what_fits_their_tokens(store):
    run = trained(store, "pairs", unit="words")
    app = opened_at("look_inside/mistakes.py", run=run.id, show="scores")
    assert [one.label for one in app.metric] == ["chrF"]
    assert "under 4 words" in said(app)
