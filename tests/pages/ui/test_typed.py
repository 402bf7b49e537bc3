"""A text too long for its field stays in it, and a sentence says how much is read."""

import pytest

from tests.pages.looking import said

FIELDS = [
    ("by_hand/page.py", {}, "words"),
    ("masks/page.py", {}, "masks-text-own-one"),
    ("masks/page.py", {"mask": "cross"}, "masks-target-own"),
    ("positions/page.py", {"view": "shuffle"}, "positions-text-own"),
]


@pytest.mark.parametrize(("page", "query", "key"), FIELDS)
def test_a_long_paste_is_kept_and_answered(open_page, page, query, key):
    app = open_page(page, **query)
    app.text_input(key=key).set_value("word " * 500).run()
    assert not app.exception
    assert "The text has 2,500 characters; at most" in said(app)
    assert app.text_input(key=key).value == "word " * 500
    assert app.text_input(key=key).proto.max_chars == 0  # a limit would refuse the paste
    app.text_input(key=key).set_value("word word").run()
    assert "2,500 characters" not in said(app)
