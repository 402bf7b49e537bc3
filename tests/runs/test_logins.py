"""Who is logged in, and what that lets them do."""

from __future__ import annotations

import json

import pytest

from tests.runs.waiting import tiny
from tfm_core.runs import auth, settings
from tfm_core.runs.auth import NotYours, OnlyWatches, Visitor, hashed, new_token
from tfm_core.runs.settings import Settings

pytestmark = pytest.mark.quick

BROWSER = hashed(new_token())
ANN = {
    "is_logged_in": True,
    "iss": "https://login.example.org",
    "sub": "1",
    "name": "Ann Lee",
    "email": "Ann@Example.org",
    "email_verified": True,
}


def visitor(claims: dict[str, object], said: Settings | None = None, **more: bool) -> Visitor:
    is_host = more.get("is_host", False)
    known = auth.person(claims)
    return auth.visitor(known, said or Settings(), browser=BROWSER, is_host=is_host)


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
    anybody = visitor({})
    assert anybody.owner == BROWSER
    with pytest.raises(OnlyWatches, match="Log in to start"):
        anybody.check_acts()
    for owner in (None, BROWSER):  # what this browser began before people logged in here
        with pytest.raises(OnlyWatches):
            anybody.check(store.create(tiny(), owner=owner))
    assert not anybody.is_admin


def test_everybody_who_is_logged_in_may_start_unless_there_is_a_list(store) -> None:
    ann = visitor(ANN)
    ann.check_acts()
    ann.check(store.create(tiny(), owner=ann.owner, owner_name=ann.name))
    for owner in (None, BROWSER):
        with pytest.raises(NotYours):
            ann.check(store.create(tiny(), owner=owner))


def test_a_list_names_addresses_and_whole_domains() -> None:
    for listed, may in [
        ("ann@example.org", True),
        ("ANN@EXAMPLE.ORG", True),
        ("ben@example.org, @example.org", True),
        ("ben@example.org", False),
        ("@example.com", False),
        ("@org", False),
        ("@ample.org", False),
        ("@sub.example.org", False),
    ]:
        said = settings.read({"TFM_MAY_START": listed})
        assert (visitor(ANN, said).only_watches == "") == may
        assert may or "ann@example.org may watch" in visitor(ANN, said).only_watches


def test_the_domain_of_an_address_is_what_follows_its_last_at() -> None:
    person = ANN | {"email": '"ann@example.com"@example.org'}
    for listed, may in (("@example.org", True), ("@example.com", False)):
        said = settings.read({"TFM_MAY_START": listed})
        assert (visitor(person, said).only_watches == "") == may


@pytest.mark.parametrize("claims", [{"email_verified": False}, {"email": None}, {"email": 7}])
def test_an_address_that_is_not_verified_is_on_no_list(claims: dict[str, object]) -> None:
    said = settings.read({"TFM_MAY_START": "@example.org", "TFM_ADMINS": "ann@example.org"})
    unknown = visitor(ANN | claims, said)
    assert "no verified email address" in unknown.only_watches
    assert not unknown.is_host


def test_a_provider_that_says_nothing_of_verifying_is_believed() -> None:
    said = settings.read({"TFM_MAY_START": "@example.org"})
    claims = {name: value for name, value in ANN.items() if name != "email_verified"}
    visitor(claims, said).check_acts()


def test_an_admin_and_who_has_the_key_may_change_every_run(store) -> None:
    said = settings.read({"TFM_MAY_START": "@example.com", "TFM_ADMINS": "ann@example.org"})
    for who in (visitor(ANN, said), visitor({}, said, is_host=True)):
        who.check_acts()
        assert who.is_admin
        for owner in (None, hashed(new_token())):
            who.check(store.create(tiny(), owner=owner))


def test_a_run_keeps_the_name_of_its_owner_and_a_copy_that_of_its_maker(store, end) -> None:
    ann, ben = visitor(ANN), visitor(ANN | {"sub": "2", "name": "Ben"})
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


def test_what_is_neither_address_nor_domain_is_refused() -> None:
    for text in ["example.org", "ann@", "@", "@a b", "<ann@example.org>", "a@b@c"]:
        with pytest.raises(ValueError, match="TFM_MAY_START is"):
            settings.read({"TFM_MAY_START": text})


def test_an_admin_is_named_by_address() -> None:
    with pytest.raises(ValueError, match="TFM_ADMINS is '@example"):
        settings.read({"TFM_ADMINS": "@example.org"})


def test_nothing_is_published_where_one_logs_in_to_watch_unless_it_is_said() -> None:
    assert settings.read({"TFM_LOGIN_TO_WATCH": "1"}).max_published == 0
    said = {"TFM_LOGIN_TO_WATCH": "1", "TFM_MAX_PUBLISHED": "3"}
    assert settings.read(said).max_published == 3
