"""Name, tags, note and group of a run: kept in its folder, bounded, and mended by nobody."""

import json

import pytest

from tests.pairwise import crossed
from tests.runs.waiting import tiny
from tfm_core.runs import Run
from tfm_core.runs.record.labels import Labels
from tfm_core.sentences import StudentError

MAX_GROUP, MAX_NOTE, MAX_TAG, MAX_TAGS = 80, 2_000, 30, 12

pytestmark = pytest.mark.quick

ODD = {
    "number": 3,
    "infinite": float("inf"),
    "object": {"a": 1},
    "half a character": "\ud800",
    "numbers": [1],
    "empty tags": [""],
    "too long": "x" * (MAX_NOTE + 1),
    "too many": [f"t{k}" for k in range(MAX_TAGS + 1)],
    "tag too long": ["x" * (MAX_TAG + 1)],
}


def again(run: Run) -> Run:
    """The same run, read anew."""
    return Run(run.folder)


def test_labels_are_found_as_given_what_is_not_said_stays(store):
    run = store.create(tiny())
    assert again(run).labels == Labels()
    store.label(run.id, tags=["baseline", "한국어"], note="First.\nSecond.", group="Heads")
    store.rename(run.id, "Eight heads")
    assert again(run).labels == Labels(
        "Eight heads", ("baseline", "한국어"), "First.\nSecond.", "Heads"
    )
    assert again(run).meta.name == "Eight heads"
    assert again(run).damage is None
    run = store.create(tiny(), group="Heads")
    assert run.labels.group == "Heads"
    store.label(run.id, tags=["one"], note="Kept.")
    assert store.label(run.id, group="").labels == Labels(None, ("one",), "Kept.", None)
    assert store.label(run.id, tags=[], note=" \n ").labels == Labels()
    run = store.create(tiny())
    tags = store.label(run.id, tags=["Slow, baseline", " slow ", "two\nwords", ","]).labels.tags
    assert tags == ("Slow", "baseline", "two words")


def test_a_run_is_named_by_a_person_up_to_the_longest_name(store):
    plain, preset = store.create(tiny()), store.create(tiny(), name="Copy", preset="copy")
    assert not plain.is_named
    assert not preset.is_named
    assert store.create(tiny(), name="Mine").is_named
    assert store.rename(plain.id, plain.meta.name).is_named
    tags = tuple("x" * (MAX_TAG - 2) + f"{k:02}" for k in range(MAX_TAGS))
    note, group, name = "x" * MAX_NOTE, "g" * MAX_GROUP, "n" * 80
    run = store.create(tiny())
    store.label(run.id, tags=tags, note=note, group=group)
    store.rename(run.id, name)
    assert again(run).labels == Labels(name, tags, note, group)
    with pytest.raises(StudentError, match="has 81 characters; the limit is 80"):
        store.rename(run.id, name + "n")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"tags": ["x" * (MAX_TAG + 1)]}, f"the limit is {MAX_TAG}"),
        ({"tags": [f"t{k}" for k in range(MAX_TAGS + 1)]}, f"the limit is {MAX_TAGS}"),
        ({"note": "x" * (MAX_NOTE + 1)}, "the limit is 2,000"),
        ({"group": "x" * (MAX_GROUP + 1)}, f"the limit is {MAX_GROUP}"),
    ],
)
def test_what_is_too_long_is_refused_in_a_sentence_and_changes_nothing(store, given, sentence):
    run = store.create(tiny())
    before = store.label(run.id, tags=["kept"], note="Kept.", group="Kept").labels
    with pytest.raises(StudentError, match=sentence):
        store.label(run.id, **{"note": "New.", **given})
    assert again(run).labels == before


@pytest.mark.parametrize(("field", "odd"), crossed(("name", "tags", "note", "group"), ODD))
def test_of_garbled_labels_the_rest_is_kept_and_said(store, field, odd):
    run = store.create(tiny(), name="Begun")
    values = {"name": "Named", "tags": ["a"], "note": "Note.", "group": "Heads"}
    (run.folder / "labels.json").write_text(json.dumps(values | {field: ODD[odd]}))
    found = again(run)
    kept = {"name": "Named", "tags": ("a",), "note": "Note.", "group": "Heads"}
    for name, value in kept.items():
        assert name == field or getattr(found.labels, name) == value
    assert getattr(found.labels, field) == getattr(Labels(), field)
    assert f"labels.json has a value of “{field}” that cannot be" in found.damage
    assert found.problem is None
    assert found.meta.name == ("Begun" if field == "name" else "Named")


def test_a_copy_has_the_name_and_no_other_label(store, end):
    run = end(store.create(tiny(), name="Begun", group="Heads"), "finished", step=7)
    store.label(run.id, tags=["a"], note="Of this one alone.")
    store.rename(run.id, "Named")
    copy = store.fork(run.id, steps=19)
    assert copy.meta.name == "Named"
    assert copy.labels == Labels()
