"""Whose a run is, by browser or by login, and what that lets a visitor do."""

import json

import pytest

from tests.runs.waiting import tiny
from tfm_core.runs import auth
from tfm_core.runs.auth import NotYours, OnlyWatches, Visitor, hashed, is_token, new_token

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


def test_only_the_owner_may_change_a_run_and_no_stranger_one_that_no_browser_began(store):
    run = store.create(tiny(), owner=hashed(TOKEN))
    visitor().check(run)
    with pytest.raises(NotYours, match=r"another visitor\. Train a copy"):
        visitor(OTHER).check(run)
    assert not visitor().may_change(store.create(tiny()))


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


BROWSER = hashed(new_token())

ANN = {
    "is_logged_in": True,
    "iss": "https://login.example.org",
    "sub": "1",
    "name": "Ann Lee",
    "email": "Ann@Example.org",
    "email_verified": True,
}


def logged_in(claims: dict[str, object]) -> Visitor:
    return auth.visitor(auth.person(claims), browser=BROWSER)


def test_a_person_is_issuer_and_subject_whatever_else_the_provider_says() -> None:
    renamed = auth.person(ANN | {"name": "Ann Kim", "email": "ann.kim@example.org"})
    known = auth.person(ANN)
    assert known is not None
    assert renamed is not None
    assert (renamed.id, renamed.name) == (known.id, "Ann Kim")
    for other in ({"sub": "2"}, {"iss": "https://login.example.com"}):
        found = auth.person(ANN | other)
        assert found is not None
        assert found.id != known.id


def test_who_is_not_logged_in_is_nobody() -> None:
    for claims in [
        {},
        {"is_logged_in": False},
        {"is_logged_in": "yes"},
        {"sub": ""},
        {"iss": None},
    ]:
        assert auth.person({} if not claims else ANN | claims) is None


def test_a_name_is_one_line_and_no_address() -> None:
    for claims, name in [
        ({}, "Ann Lee"),
        ({"name": "  Ann \n Lee\t"}, "Ann Lee"),
        ({"name": None}, "Ann"),  # of the address
        ({"name": "", "preferred_username": "lee@example.org"}, "lee"),
        ({"name": "a" * 200}, "a" * 80),
        ({"name": "\u202e\x00"}, "Ann"),
        ({"name": None, "email": None}, "?"),
    ]:
        known = auth.person(ANN | claims)
        assert known is not None
        assert known.name == name


def test_who_is_not_logged_in_only_watches(store) -> None:
    anybody = logged_in({})
    assert anybody.owner == BROWSER
    with pytest.raises(OnlyWatches, match="Log in to start"):
        anybody.check_acts()
    for owner in (None, BROWSER):  # what this browser began before people logged in here
        with pytest.raises(OnlyWatches):
            anybody.check(store.create(tiny(), owner=owner))
    assert not anybody.may_change_all


def test_everybody_who_is_logged_in_may_start(store) -> None:
    ann = logged_in(ANN)
    ann.check_acts()
    ann.check(store.create(tiny(), owner=ann.owner, owner_name=ann.name))
    for owner in (None, BROWSER):
        with pytest.raises(NotYours):
            ann.check(store.create(tiny(), owner=owner))


def test_a_run_keeps_the_name_of_its_owner_and_a_copy_that_of_its_maker(store, end) -> None:
    ann, ben = logged_in(ANN), logged_in(ANN | {"sub": "2", "name": "Ben"})
    run = store.create(tiny(), owner=ann.owner, owner_name=ann.name)
    kept = json.loads((run.folder / "meta.json").read_text())
    assert (kept["owner"], kept["owner_name"]) == (ann.owner, "Ann Lee")
    assert "example.org" not in (run.folder / "meta.json").read_text()
    end(run)
    copy = store.fork(run.id, steps=13, owner=ben.owner, owner_name=ben.name)
    assert (copy.meta.owner, copy.meta.owner_name) == (ben.owner, "Ben")
    assert store.fork(run.id, steps=13).meta.owner_name is None


@pytest.mark.parametrize("name", ["", "two\nlines", "x" * 81, 7])
def test_a_forged_name_of_an_owner_is_none(store, name: object) -> None:
    run = store.create(tiny(), owner=BROWSER)
    path = run.folder / "meta.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"owner_name": name}))
    assert store.get(run.id).meta.owner_name is None
