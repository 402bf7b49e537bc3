"""The page on own data: pairs, labels and texts are pasted, looked at, kept and learned."""

import json

import pytest
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.testing.v1 import AppTest

from tests.pages.opening import opened_at
from tests.pages.train.own_data.test_pictures import PAGE, TOKEN, own_of, words
from tfm_core.choices.config import CorpusTaskConfig, Experiment
from tfm_core.data.user_data import kinds, sets
from tfm_core.data.user_data.kinds import report_of
from tfm_core.data.user_data.texts import as_lines, inspect_text

PAIRS = "\n".join(f"say {n} and {n + 1}\tsage {n} und {n + 1}" for n in range(40))
LABELS = "\n".join(f"it is {n}\t{'even' if n % 2 == 0 else 'odd'}" for n in range(40))
TEXT = "the dog sees the cat and the cat sees the dog again\n" * 30
PASTED = {"pairs": PAIRS, "labels": LABELS, "text": TEXT}


def pasted(kind: str, text: str) -> AppTest:
    app = opened_at(PAGE, token=TOKEN, kind=kind)
    app.text_area(key=f"own-data-paste-{kind}-0").set_value(text).run()
    return app


@pytest.mark.parametrize("kind", PASTED)
def test_what_is_pasted_is_kept_and_trained(busy_queue, store, kind):
    app = pasted(kind, PASTED[kind])
    app.text_input(key=f"own-data-name-{kind}-0").set_value("Mine").run()
    app.button(key="own-data-keep").click().run()
    (own,) = own_of(store)
    assert (own.kind, own.name) == (kind, "Mine")
    assert own.id in app.query_params["set"]
    app.button(key="own-train-usual").click().run()
    (run,) = [run for run in store.list() if run.meta.name == "Mine"]
    assert sets.set_of(run.experiment.task) == own.id


def test_a_bad_line_is_said_with_its_number_and_the_rest_is_taken(store):
    app = pasted("pairs", PAIRS + "\nonly one column\nlast one\tletztes")
    assert "Line 41" in words(app)
    assert not app.button(key="own-data-keep").disabled
    app.button(key="own-data-keep").click().run()
    assert sum(own_of(store)[0].counts.values()) == 41


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("labels", LABELS.replace("odd", "even"), "All 40 sentences have the label “even”"),
        ("text", "short", "characters; it needs"),
    ],
)
def test_what_cannot_be_learned_is_one_sentence(store, kind, text, said):
    app = pasted(kind, text)
    assert said in words(app)
    assert "own-data-keep" not in {button.key for button in app.main.button}
    app.button(key="own-data-again").click().run()
    assert app.text_area(key=f"own-data-paste-{kind}-1").value == ""
    assert own_of(store) == []


def test_a_file_and_a_test_file_of_ones_own_are_read_and_let_go_of(store, monkeypatch):
    gone: list[str] = []
    monkeypatch.setattr(
        MemoryUploadedFileManager, "remove_file", lambda _files, _session, name: gone.append(name)
    )
    app = opened_at(PAGE, token=TOKEN, kind="labels")
    app.file_uploader(key="own-data-file-labels-0").upload("ours.csv", LABELS.encode())
    test = "it is 98\teven\nit is 99\todd\nit is 4\teven"
    app.file_uploader(key="own-data-test-labels-0").upload("test.csv", test.encode()).run()
    assert "of 7. They partly measure memory" in words(app)
    app.button(key="own-data-keep").click().run()
    (own,) = own_of(store)
    assert (own.name, own.counts["test"], own.split["by"]) == ("ours", 3, "file")
    assert len(set(gone)) == 2


def test_the_text_that_comes_along_is_taken_with_one_press(store):
    app = opened_at(PAGE, token=TOKEN, kind="text")
    assert "Alice in Wonderland" in words(app)
    app.button(key="own-data-keep").click().run()
    (own,) = own_of(store)
    assert own.name == "Alice in Wonderland, first chapter"


@pytest.mark.parametrize("kind", ["pairs", "labels"])
def test_a_kept_set_is_looked_at_as_it_was_read_and_can_be_taken_in_again(kind):
    for own in [one for one in sets.examples() if one.kind == kind]:
        report = report_of(own)
        assert report.counts == own.counts
        again = inspect_text(kind, as_lines(report), unit=report.unit)
        assert again.refusal is None
        assert again.skipped == ()
        assert sum(again.counts.values()) == sum(report.counts.values())
        assert [*map(sum, again.balance.values())] == [*map(sum, report.balance.values())]
        column = "source" if kind == "pairs" else "sentence"
        assert sorted(again.lengths[column]) == sorted(report.lengths[column])


def test_a_kept_text_takes_the_place_of_the_built_in_one_in_the_form(store):
    app = pasted("text", TEXT)
    app.button(key="own-data-keep").click().run()
    (own,) = own_of(store)
    app = opened_at(
        "train/page.py", token=TOKEN, **{"task.name": "own-text", "model.family": "decoder-only"}
    )
    app.selectbox(key="own-set-").set_value(own.id).run()
    asked = Experiment.parse(app.session_state["draft"].values)
    assert asked.task == kinds.task_of(own)
    assert isinstance(asked.task, CorpusTaskConfig)
    assert not [one for one in app.caption if "chapter 1" in one.value]
    app.selectbox(key=f"own-set-{own.id}").set_value("").run()
    assert [one for one in app.caption if "chapter 1" in one.value]


def test_the_proposed_name_follows_the_file_and_a_typed_one_stays(store):
    app = opened_at(PAGE, token=TOKEN, kind="pairs")
    app.file_uploader(key="own-data-file-pairs-0").upload("german.csv", PAIRS.encode()).run()
    name = "own-data-name-pairs-0"
    assert app.text_input(key=name).value == "german"
    app.text_input(key=name).set_value("Mine").run()
    app.segmented_control(key="own-data-pairs-unit").set_value("characters").run()
    assert app.text_input(key=name).value == "Mine"
    app.file_uploader(key="own-data-file-pairs-0").upload("dutch.csv", PAIRS.encode()).run()
    assert app.text_input(key=name).value == "dutch"


ANKI = "\n".join(f"say {n} again\t다시 {n} 말해\tCC-BY example.org #{n}" for n in range(40))


def test_columns_are_chosen_beside_the_first_rows(store):
    app = pasted("pairs", ANKI)
    source, target = app.main.selectbox
    assert (source.value, target.value) == (0, 1)
    assert "40 kept. Unused: column 3." in words(app)
    assert list(app.main.dataframe[0].value.iloc[0]) == [
        "say 0 again",
        "다시 0 말해",
        "CC-BY example.org #0",
    ]
    target.set_value(0).run()
    source, target = app.main.selectbox
    assert (source.value, target.value) == (1, 0)  # both roles stay apart
    app.button(key="own-data-keep").click().run()
    (own,) = own_of(store)
    assert own.details["read"]["columns"] == [1, 0]
    assert "column 2, column 1" in words(app)


def test_a_wrong_column_is_mended_where_it_is_refused(store):
    app = pasted("labels", "\n".join(f"it is {n}\t{'a' if n % 2 else 'b'}\tno" for n in range(40)))
    _text, label = app.main.selectbox
    label.set_value(2).run()
    assert "All 40 sentences have the label “no”" in words(app)
    _text, label = app.main.selectbox
    label.set_value(1).run()
    assert "own-data-keep" in {button.key for button in app.main.button}


def test_names_and_cells_of_any_kind_can_be_shown(store):
    record = (
        '{"a\\ud800\\n*b*": "one %d", "$c$": "two %d", "x": ["\\ud800"], "": null, "y": "\\udc00"}'
    )
    app = pasted("pairs", "\n".join(record % (n, n) for n in range(30)))
    assert app.main.dataframe[0].value.shape == (30, 5)
    app.button(key="own-data-keep").click().run()
    assert len(own_of(store)) == 1
    wide = "\n".join(",".join(f"{row} {at}" for at in range(300)) for row in range(30))
    app = pasted("pairs", wide)
    assert app.main.dataframe[0].value.shape == (30, 22)
    assert "278 more." in words(app)


def uploaded(kind: str, *files: tuple[str, bytes]) -> AppTest:
    app = opened_at(PAGE, token=TOKEN, kind=kind)
    for name, content in files:
        app.file_uploader(key=f"own-data-file-{kind}-0").upload(name, content)
    return app.run()


def test_two_files_are_pairs_that_can_be_swapped(store):
    english, german = (
        "\n".join(column).encode()
        for column in zip(*(line.split("\t") for line in PAIRS.split("\n")), strict=True)
    )
    app = uploaded("pairs", ("train.en", english), ("train.de", german))
    assert "Read line by line: train.en and train.de." in words(app)
    assert app.text_input(key="own-data-name-pairs-0").value == "train"
    source, _target = app.main.selectbox
    source.set_value(1).run()
    app.button(key="own-data-keep").click().run()
    assert own_of(store)[0].details["read"]["names"] == ["de", "en"]
    app = uploaded("pairs", ("train.en", english + b"\nmore"), ("train.de", german))
    assert "train.en has 41 lines, but train.de has 40." in words(app)


def test_an_encoding_is_said_where_it_is_guessed_and_asked_for_where_it_is_not():
    korean = PAIRS.replace("sage", "말해").encode("cp949")
    app = uploaded("pairs", ("ours.tsv", korean))
    assert "Not UTF-8: read as Korean (cp949)." in words(app)
    assert app.main.selectbox[0].value == "cp949"
    app = uploaded("pairs", ("ours.tsv", PAIRS.replace("sage", "łódź ąę").encode("cp1250")))
    assert "Line 1 is not UTF-8" in words(app)
    assert app.main.selectbox[0].value is None
    app.main.selectbox[0].set_value("cp1250").run()
    assert app.main.dataframe[0].value.iloc[0, 1] == "łódź ąę 0 und 1"
    assert "own-data-keep" in {button.key for button in app.main.button}


def test_long_reviews_are_cut_and_their_number_said_or_left_out(store):
    reviews = "".join(f"{'very ' * 200}good {n}\t{n % 2}\n" for n in range(20)) + LABELS
    app = pasted("labels", reviews)
    (cut,) = [field for field in app.main.number_input if field.label == "Cut at (tokens)"]
    assert cut.value == 128
    assert "Examples cut at 128 tokens: 20." in words(app)
    cut.set_value(0).run()
    assert "20 lines skipped" in [block.label for block in app.main.expander]


def test_answers_in_chats_are_counted(store):
    lines = []
    for n in range(30):
        asked = {"role": "user", "content": f"say {n}"}
        lines.append(json.dumps({"messages": [asked, {"role": "assistant", "content": f"{n}"}]}))
    app = pasted("pairs", "\n".join(lines))
    assert "30 answers in chats read: 30 kept." in words(app)
