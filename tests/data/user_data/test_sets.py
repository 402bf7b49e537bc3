"""Sets of one's own: written once, named by what they hold, and never learned from when changed."""

import dataclasses
import hashlib
import json

import pytest

from tfm_core.data.user_data import sets
from tfm_core.data.user_data.sets import Prepared, SetDamaged, SetMissing
from tfm_core.reading import Unreadable

pytestmark = pytest.mark.quick

PREPARED = Prepared(
    kind="pairs",
    name="Two words",
    counts={"train": 3, "validation": 1, "test": 1},
    split={"by": "seed", "seed": 0},
    details={"unit": "words"},
    files={"train.jsonl": b'["a", "b"]\n', "test.jsonl": b"[]\n"},
)
ONE, OTHER = "1" * 64, "2" * 64


@pytest.fixture(autouse=True)
def runs(tmp_path):
    with sets.below(tmp_path):
        yield tmp_path


def test_what_is_written_is_read_again():
    made = sets.write(PREPARED, owner=ONE)
    found = sets.find(made.id)
    assert (found.kind, found.name, found.counts) == ("pairs", "Two words", PREPARED.counts)
    assert (found.split, found.details) == (PREPARED.split, PREPARED.details)
    assert {name: found.content(name) for name in found.files} == PREPARED.files
    assert found.owners == (ONE,)
    assert found.n_bytes >= PREPARED.n_bytes
    assert [one.id for one in sets.listed()] == [made.id]


def test_a_set_is_named_by_all_that_it_holds():
    others = (
        dataclasses.replace(PREPARED, name="Other"),
        dataclasses.replace(PREPARED, split={"by": "seed", "seed": 1}),
        dataclasses.replace(PREPARED, files={**PREPARED.files, "test.jsonl": b"[1]\n"}),
    )
    assert len({sets.id_of(one) for one in (PREPARED, *others)}) == 4
    assert sets.id_of(PREPARED) == sets.id_of(dataclasses.replace(PREPARED))


def test_the_same_set_of_two_visitors_is_kept_until_both_gave_it_up():
    sets.write(PREPARED, owner=ONE)
    both = sets.write(PREPARED, owner=OTHER)
    assert both.owners == (ONE, OTHER)
    assert sets.give_up(both, ONE)
    assert not sets.give_up(sets.find(both.id), OTHER)


@pytest.mark.parametrize("name", [*PREPARED.files, "set.json"])
def test_a_file_that_was_changed_is_never_learned_from(name):
    own = sets.write(PREPARED)
    (own.folder / name).write_bytes(b'{"format": 1}')
    with pytest.raises(SetDamaged, match=f"damaged: {name} "):
        sets.find(own.id).content(name)
    (own.folder / name).unlink()
    with pytest.raises(SetDamaged, match=f"damaged: {name} is missing"):
        sets.find(own.id).content(name)


def test_a_set_whose_words_say_something_else_under_its_old_name_is_damaged():
    own = sets.write(PREPARED)
    values = json.loads((own.folder / "set.json").read_text())
    (own.folder / "set.json").write_text(json.dumps(values | {"name": "Forged"}))
    assert sets.listed()[0].problem == "set.json was changed"


def test_a_set_that_is_not_here_is_said_to_be_elsewhere():
    for set_id in ["f" * 20, "example-none", "", "../../etc", "a" * 9999]:
        with pytest.raises(SetMissing, match=r"not here.*still open\."):
            sets.find(set_id)


def test_half_a_set_is_never_left(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sets, "sync_file", full)
    with pytest.raises(OSError, match="No space"):
        sets.write(PREPARED)
    assert list(sets.root().iterdir()) == []


def test_what_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(sets, "MAX_BYTES", 13)
    with pytest.raises(ValueError, match=r"has 14 bytes; the limit is 13"):
        sets.write(PREPARED)
    monkeypatch.setattr(sets, "MAX_BYTES", 14)
    assert sets.write(PREPARED).n_bytes >= 14


def test_a_damaged_note_of_who_keeps_a_set_damages_nothing_else():
    own = sets.write(PREPARED, owner=ONE)
    (own.folder / "kept.json").write_text('{"owners": 7, "kept": []}')
    assert sets.find(own.id).owners == ()


@pytest.mark.parametrize("name", ["kept.json", "set.json"])
def test_a_set_that_lists_a_file_which_every_set_has_is_refused(name):
    values = json.loads(sets.files_of(PREPARED)["set.json"])
    files = sets.files_of(PREPARED) | {name: b"{}"}
    values["files"][name] = hashlib.sha256(b"{}").hexdigest()
    files["set.json"] = json.dumps(values).encode()
    with pytest.raises(Unreadable, match="is damaged"):
        sets.read_from(lambda name, most: files[name])
