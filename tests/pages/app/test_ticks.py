"""Ticks: what was done is in the browser's cookie alone, whatever that says."""

from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages.app.navigation import ticks
from pages.app.navigation.page_table import PAGES, WAY
from tests.pages.looking import said, sent

NAMES = st.sampled_from([page.name for page in WAY])
MARKS = st.text("abcz019-", min_size=1, max_size=40)


def kept(app: AppTest) -> dict[str, object]:
    """Return the value that the browser is asked to store."""
    ((data,),) = [data for name, *data in sent(app, "effects") if name == "cookie"]
    return dict(data)


@given(st.dictionaries(NAMES, st.sets(MARKS, min_size=1, max_size=1), max_size=9))
def test_what_is_written_is_read_again(done):
    assert ticks.read(ticks.written(done)) == done


@given(st.text(max_size=90) | st.none() | st.integers() | st.lists(st.text()))
def test_any_cookie_at_all_is_read(text):
    for name, marks in ticks.read(text).items():
        assert PAGES[name].chapter
        assert len(marks) <= max(1, PAGES[name].questions)


def test_a_forged_cookie_marks_no_other_pages_and_no_more_than_there_is():
    text = "masks:act/home:act/nowhere:act/practice:a:b:c:d/numbers:<b>:A b/before"
    found = ticks.read(text)
    assert found == {
        "masks": {"act"},
        "practice": {"a", "b", "c"},
        "numbers": set(),
        "before": set(),
    }
    assert ticks.written(found) == "masks:act/practice:a:b:c"
    assert ticks.read("masks:act/" * 999) == {}
    older = ticks.read("tensors:strides/words:a:b:c:d:e")  # both are one page
    assert older.keys() == {"numbers"}
    assert len(older["numbers"]) == PAGES["numbers"].questions
    assert ticks.read("gpt:order/captions:swap/draw:act") == {"try": {"order", "swap"}}
    assert ticks.read("experiments:heads") == {"challenges": {"experiment"}}
    both = {"challenges": {"experiment", "bug"}}
    assert ticks.read("experiments:heads/find-the-bug:act") == both
    assert len(both["challenges"]) == PAGES["challenges"].questions


def test_a_page_without_questions_is_done_once_the_reader_changed_what_it_shows(open_page):
    app = open_page("look_inside/masks.py", mask="padding")  # a link opens a view: nothing was done
    assert kept(app)["text"] == ""
    app.button_group(key="masks-mask").set_value("causal").run()
    app.run()
    assert kept(app)["text"] == "masks:act"
    assert "check_circle: done" in said(app)


def test_the_map_counts_what_is_done_and_forgets_on_a_press(open_page):
    app = open_page(PAGES["challenges"].file)
    assert f"of {len(WAY)} done" not in said(app)
    app.session_state["ticks"] = {WAY[0].name: {"a", "b", "c", "d"}, "masks": {"act"}}
    app.run()
    assert f"2 of {len(WAY)} done" in said(app)
    links = [link.proto for link in app.get("page_link")]
    assert [link.page for link in links if "\u00a0min" in link.label] == [
        page.url_path for page in WAY
    ]
    ticked = [link.page for link in links if "✓" in link.label]
    assert ticked == [WAY[0].name, "masks"]
    before = kept(app)["resets"]
    app.button(key="reset-ticks").click().run()
    assert "done" not in said(app)
    assert kept(app)["text"] == ""
    assert kept(app)["resets"] != before
