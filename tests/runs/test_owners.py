"""Owners: a run is its browser's; others may watch and copy it."""

import json

import pytest

from tests.runs.waiting import tiny
from tfm_core.runs.auth import NotYours, Visitor, hashed, is_token, new_token

pytestmark = pytest.mark.quick

TOKEN, OTHER = "a" * 43, "b" * 43


def visitor(token: str = TOKEN, *, is_public: bool = True) -> Visitor:
    return Visitor(hashed(token), is_public=is_public)


def test_a_run_keeps_the_hash_of_its_owners_token_and_never_the_token(store):
    run = store.create(tiny(), owner=hashed(TOKEN))
    files = b"".join(path.read_bytes() for path in run.folder.rglob("*") if path.is_file())
    assert TOKEN.encode() not in files
    assert json.loads((run.folder / "meta.json").read_text())["owner"] == hashed(TOKEN)
    assert store.get(run.id).meta.owner == hashed(TOKEN)


def test_only_the_owner_may_change_a_run(store):
    run = store.create(tiny(), owner=hashed(TOKEN))
    visitor().check(run)
    with pytest.raises(NotYours, match=r"another visitor\. Train a copy"):
        visitor(OTHER).check(run)


def test_a_run_that_no_browser_began_is_no_strangers(store):
    run = store.create(tiny())
    assert not visitor().may_change(run)


def test_on_ones_own_machine_everybody_may_do_everything(store):
    nobodys, anothers = store.create(tiny()), store.create(tiny(), owner=hashed(OTHER))
    alone = visitor(is_public=False)
    assert alone.may_change(nobodys)
    assert alone.may_change(anothers)
    assert alone.began(nobodys)
    assert not alone.began(anothers)


def test_a_forged_owner_is_nobody(store):
    for owner in ["", "ü", "\ud800", "x" * 64, 7, ["a"], {}, hashed(TOKEN) + "0"]:
        run = store.create(tiny(), owner=hashed(TOKEN))
        values = json.loads((run.folder / "meta.json").read_text()) | {"owner": owner}
        (run.folder / "meta.json").write_text(json.dumps(values))
        assert not visitor().may_change(store.get(run.id))


def test_a_copy_is_its_makers(store, end):
    run = store.create(tiny(), owner=hashed(TOKEN))
    end(run)
    copy = store.fork(run.id, steps=13, owner=hashed(OTHER))
    assert visitor(OTHER).may_change(copy)
    assert not visitor().may_change(copy)
    assert visitor().may_change(store.get(run.id))


def test_runs_in_hand_are_counted_by_owner(store, end):
    for _ in range(3):
        store.create(tiny(), owner=hashed(TOKEN))
    store.create(tiny(), owner=hashed(OTHER))
    end(store.create(tiny(), owner=hashed(OTHER)))
    store.create(tiny())
    assert store.n_active(hashed(TOKEN)) == 3
    assert store.n_active(hashed(OTHER)) == 1
    assert store.n_active(hashed(new_token())) == 0


def test_tokens_are_long_and_differ():
    assert all(is_token(new_token()) for _ in range(20))
    assert len({new_token() for _ in range(20)}) == 20
    assert not any(is_token(text) for text in ("", "a" * 42, "a" * 44, "ü" * 43, "a" * 42 + "\n"))
