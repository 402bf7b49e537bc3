"""The page on own data: pairs, labels and texts are pasted, looked at, kept and learned."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.testing.v1 import AppTest

from pages.ui.runs import run_time
from tests.pages.opening import opened_at
from tfm_core.config import CorpusTaskConfig, Experiment
from tfm_core.config.own_tasks import OwnTextTaskConfig
from tfm_core.data.own import kinds, sets
from tfm_core.data.own.report import as_lines, report_of
from tfm_core.data.own.texts import inspect_text
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.store import RunStore

PAGE = "own_data/page.py"
TOKEN = "a" * 43
PAIRS = "\n".join(f"say {n} and {n + 1}\tsage {n} und {n + 1}" for n in range(40))
LABELS = "\n".join(f"it is {n}\t{'even' if n % 2 == 0 else 'odd'}" for n in range(40))
TEXT = "the dog sees the cat and the cat sees the dog again\n" * 30
PASTED = {"pairs": PAIRS, "labels": LABELS, "text": TEXT}


@pytest.fixture(autouse=True)
def _threads_end() -> Iterator[None]:
    """Wait for what the form asks in the background: it imports torch."""
    yield
    run_time.wait()


def words(app: AppTest) -> str:
    groups = (app.main.markdown, app.main.caption, app.main.header, app.main.error)
    return "\n".join(str(one.value).replace("\\", "") for group in groups for one in group)


def pasted(kind: str, text: str) -> AppTest:
    app = opened_at(PAGE, token=TOKEN, kind=kind)
    app.text_area(key=f"own-data-paste-{kind}-0").set_value(text).run()
    assert not app.exception
    return app


def own_of(store: RunStore) -> list[sets.OwnSet]:
    return sets.listed(store.root / "own-data")


@pytest.mark.parametrize("kind", PASTED)
def test_what_is_pasted_is_kept_and_trained(
    busy_queue: RunQueue, store: RunStore, kind: str
) -> None:
    app = pasted(kind, PASTED[kind])
    app.text_input(key=f"own-data-name-{kind}-0").set_value("Mine").run()
    app.button(key="own-data-keep").click().run()
    assert not app.exception
    (own,) = own_of(store)
    assert (own.kind, own.name) == (kind, "Mine")
    assert own.id in app.query_params["set"]
    app.button(key="own-train-usual").click().run()
    assert not app.exception
    (run,) = [run for run in store.list() if run.meta.name == "Mine"]
    assert sets.set_of(run.experiment.task) == own.id


def test_a_text_in_byte_pairs_is_kept_and_trained(busy_queue: RunQueue, store: RunStore) -> None:
    app = opened_at(PAGE, token=TOKEN, kind="text")
    app.segmented_control(key="own-data-unit-text").set_value("bpe").run()
    app.text_area(key="own-data-paste-text-0").set_value(TEXT).run()
    size = len(inspect_text("text", TEXT, unit="bpe").words[0])
    assert f"Vocabulary: **{size}** tokens" in words(app)
    app.button(key="own-data-keep").click().run()
    (own,) = own_of(store)
    app.segmented_control(key="own-proposal-text").set_value("quick").run()
    app.button(key="own-train-quick").click().run()
    assert not app.exception
    (run,) = [run for run in store.list() if sets.set_of(run.experiment.task) == own.id]
    task = run.experiment.task_as(CorpusTaskConfig)
    assert (task.data, task.unit) == (own.id, "bpe")


def test_a_bad_line_is_said_with_its_number_and_the_rest_is_taken(store: RunStore) -> None:
    app = pasted("pairs", PAIRS + "\nonly one column\nlast one\tletztes")
    assert "Line 41" in words(app)
    assert not app.button(key="own-data-keep").disabled
    app.button(key="own-data-keep").click().run()
    assert sum(own_of(store)[0].counts.values()) == 41


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("labels", LABELS.replace("odd", "even"), "All 40 sentences have the label “even”"),
        ("text", "short", "characters; it must have"),
    ],
)
def test_what_cannot_be_learned_is_one_sentence(
    store: RunStore, kind: str, text: str, said: str
) -> None:
    app = pasted(kind, text)
    assert said in words(app)
    assert "own-data-keep" not in {button.key for button in app.main.button}
    app.button(key="own-data-again").click().run()
    assert app.text_area(key=f"own-data-paste-{kind}-1").value == ""
    assert own_of(store) == []


def test_a_file_and_a_test_file_of_ones_own_are_read_and_let_go_of(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone: list[str] = []
    monkeypatch.setattr(
        MemoryUploadedFileManager, "remove_file", lambda _files, _session, name: gone.append(name)
    )
    app = opened_at(PAGE, token=TOKEN, kind="labels")
    app.file_uploader(key="own-data-file-labels-0").upload("ours.csv", LABELS.encode())
    test = "it is 98\teven\nit is 99\todd\nit is 4\teven"
    app.file_uploader(key="own-data-test-labels-0").upload("test.csv", test.encode()).run()
    assert not app.exception
    assert "of 7; partly memory" in words(app)
    app.button(key="own-data-keep").click().run()
    (own,) = own_of(store)
    assert (own.name, own.counts["test"], own.split["by"]) == ("ours", 3, "file")
    assert len(set(gone)) == 2


def test_half_a_file_of_another_encoding_is_one_sentence(store: RunStore) -> None:
    app = opened_at(PAGE, token=TOKEN, kind="pairs")
    content = PAIRS.encode() + b"\nno\xff utf-8\tnein"
    app.file_uploader(key="own-data-file-pairs-0").upload("half.csv", content).run()
    assert not app.exception
    assert "41" in words(app)
    assert app.error


def test_the_text_that_comes_along_is_taken_with_one_press(store: RunStore) -> None:
    app = opened_at(PAGE, token=TOKEN, kind="text")
    assert "Alice in Wonderland" in words(app)
    app.button(key="own-data-keep").click().run()
    assert not app.exception
    (own,) = own_of(store)
    assert own.name == "Alice in Wonderland, first chapter"


@pytest.mark.parametrize("kind", ["pairs", "labels"])
def test_a_kept_set_is_looked_at_as_it_was_read_and_can_be_taken_in_again(kind: str) -> None:
    (own,) = [one for one in sets.examples() if one.kind == kind]
    report = report_of(own)
    assert report.counts == own.counts
    again = inspect_text(kind, as_lines(report), unit=report.unit)
    assert again.refusal is None
    assert again.problems == ()
    assert sum(again.counts.values()) == sum(report.counts.values())
    assert again.balance == report.balance
    assert sorted(again.lengths["source" if kind == "pairs" else "sentence"]) == sorted(
        report.lengths["source" if kind == "pairs" else "sentence"]
    )


def test_a_set_of_sentences_is_chosen_in_the_form(store: RunStore) -> None:
    chosen = {"task.name": "own-labels", "model.family": "encoder-only"}
    app = opened_at("train/page.py", **chosen)
    assert not app.exception
    asked = Experiment.parse(app.session_state["draft"].values)
    assert isinstance(asked.task, OwnTextTaskConfig)
    assert app.selectbox(key=f"own-set-{asked.task.data}").value == asked.task.data


def test_a_kept_text_takes_the_place_of_the_pasted_one_in_the_form(store: RunStore) -> None:
    app = pasted("text", TEXT)
    app.button(key="own-data-keep").click().run()
    (own,) = own_of(store)
    app = opened_at(
        "train/page.py", token=TOKEN, **{"task.name": "own-text", "model.family": "decoder-only"}
    )
    app.selectbox(key="own-set-").set_value(own.id).run()
    assert not app.exception
    asked = Experiment.parse(app.session_state["draft"].values)
    assert asked.task == kinds.task_of(own)
    assert isinstance(asked.task, CorpusTaskConfig)
    assert "corpus-text" not in {area.key for area in app.text_area}
    app.selectbox(key=f"own-set-{own.id}").set_value("").run()
    assert "corpus-text" in {area.key for area in app.text_area}


def test_the_proposed_name_follows_the_file_and_a_typed_one_stays(store: RunStore) -> None:
    app = opened_at(PAGE, token=TOKEN, kind="pairs")
    app.file_uploader(key="own-data-file-pairs-0").upload("german.csv", PAIRS.encode()).run()
    name = "own-data-name-pairs-0"
    assert app.text_input(key=name).value == "german"
    app.text_input(key=name).set_value("Mine").run()
    app.segmented_control(key="own-data-unit-pairs").set_value("characters").run()
    assert app.text_input(key=name).value == "Mine"
    app.file_uploader(key="own-data-file-pairs-0").upload("dutch.csv", PAIRS.encode()).run()
    assert app.text_input(key=name).value == "dutch"


def test_a_text_is_kept_with_a_test_file_of_ones_own(store: RunStore) -> None:
    app = opened_at(PAGE, token=TOKEN, kind="text")
    app.text_area(key="own-data-paste-text-0").set_value(TEXT).run()
    test = "the cat sees a bird and the bird sees the cat\n" * 9
    app.file_uploader(key="own-data-test-text-0").upload("test.txt", test.encode()).run()
    assert not app.exception
    assert "of 107; never learned" in words(app)
    app.button(key="own-data-keep").click().run()
    assert not app.exception
    (own,) = own_of(store)
    assert (own.split["by"], own.counts["test"]) == ("file", 107)


ANKI = "\n".join(f"say {n} again\t다시 {n} 말해\tCC-BY example.org #{n}" for n in range(40))


def test_columns_are_chosen_beside_the_first_rows(store: RunStore) -> None:
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
    assert not app.exception
    source, target = app.main.selectbox
    assert (source.value, target.value) == (1, 0)  # both roles stay apart
    app.button(key="own-data-keep").click().run()
    (own,) = own_of(store)
    assert own.details["read"]["columns"] == [1, 0]
    assert "column 2, column 1" in words(app)


def test_the_header_can_be_switched_on_and_off(store: RunStore) -> None:
    app = pasted("labels", "review\tsentiment\n" + LABELS)
    (switch,) = [one for one in app.main.toggle if "header" in str(one.key)]
    assert switch.value
    assert "41 lines read: 40 kept, 1 header" in words(app)
    switch.set_value(False).run()
    assert "41 lines read: 41 kept" in words(app)
    app.button(key="own-data-keep").click().run()
    assert sum(own_of(store)[0].counts.values()) == 41


def test_a_wrong_column_is_mended_where_it_is_refused(store: RunStore) -> None:
    app = pasted("labels", "\n".join(f"it is {n}\t{'a' if n % 2 else 'b'}\tno" for n in range(40)))
    _text, label = app.main.selectbox
    label.set_value(2).run()
    assert "All 40 sentences have the label “no”" in words(app)
    _text, label = app.main.selectbox
    label.set_value(1).run()
    assert not app.exception
    assert "own-data-keep" in {button.key for button in app.main.button}


def test_labels_that_differ_in_capitals_are_merged_unless_switched_off(store: RunStore) -> None:
    app = pasted("labels", LABELS.replace("it is 4\teven", "it is 4\tEven"))
    (switch,) = [one for one in app.main.toggle if "merge" in str(one.key)]
    assert "“even”, “Even” differ only in case" in words(app)
    switch.set_value(False).run()
    assert not app.exception
    app.button(key="own-data-keep").click().run()
    (own,) = own_of(store)
    assert own.details["n_tgt"] == 4 + len({"even", "Even", "odd"})


def test_much_that_is_left_out_is_a_warning(store: RunStore) -> None:
    app = pasted("pairs", PAIRS + "\nalone" * 2)
    assert not app.main.warning
    app = pasted("pairs", PAIRS + "\nalone" * 3)
    (warning,) = app.main.warning
    assert "3 of 43" in warning.value
    app.button(key="own-data-keep").click().run()
    assert sum(own_of(store)[0].counts.values()) == 40


def test_names_and_cells_of_any_kind_can_be_shown(store: RunStore) -> None:
    record = (
        '{"a\\ud800\\n*b*": "one %d", "$c$": "two %d", "x": ["\\ud800"], "": null, "y": "\\udc00"}'
    )
    app = pasted("pairs", "\n".join(record % (n, n) for n in range(30)))
    assert app.main.dataframe[0].value.shape == (30, 5)
    app.button(key="own-data-keep").click().run()
    assert not app.exception
    assert len(own_of(store)) == 1
    wide = "\n".join(",".join(f"{row} {at}" for at in range(300)) for row in range(30))
    app = pasted("pairs", wide)
    assert app.main.dataframe[0].value.shape == (30, 22)
    assert "278 more." in words(app)
