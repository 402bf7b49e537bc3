"""A store, whatever keeps it: what was written is read, one alone creates, errors are said."""

import pytest

from tfm_core.hosting.store.storage import AlreadyExists, Remote, StoreUnavailable


def test_what_is_written_is_listed_and_read(url):
    remote = Remote(url)
    assert remote.listing("index") == {}
    assert remote.read("index/a.json") is None
    remote.write("index/a.json", b"one")
    remote.write("files/a/b", b"two")
    before = remote.listing("index")
    assert set(before) == {"a.json"}
    assert remote.read("index/a.json") == b"one"
    remote.write("index/a.json", b"new")
    assert remote.listing("index") != before
    remote.remove("index/a.json", "index/never")
    assert remote.listing("index") == {}


def test_one_alone_creates(url):
    remote = Remote(url)
    remote.create("calls/a/home-000002", b"one")
    with pytest.raises(AlreadyExists):
        remote.create("calls/a/home-000002", b"two")
    assert remote.read("calls/a/home-000002") == b"one"


def test_a_file_goes_there_and_back_whole(url, tmp_path):
    remote, content = Remote(url), bytes(range(256)) * 5003
    (tmp_path / "there").write_bytes(content)
    remote.upload(tmp_path / "there", "files/a/large")
    assert remote.fetch("files/a/large", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content
    assert not remote.fetch("files/a/other", tmp_path / "none")


def test_a_bucket_that_is_not_there_is_said(door):
    with pytest.raises(StoreUnavailable, match="bucket or folder of TFM_RUNS_URL does not exist"):
        Remote("s3://nobodys/runs").listing("index")


def test_a_folder_that_is_not_mounted_is_said_and_never_made(tmp_path):
    with pytest.raises(StoreUnavailable, match="bucket or folder of TFM_RUNS_URL does not exist"):
        Remote(f"file://{tmp_path}/mnt").write("index/a.json", b"one")
    assert not (tmp_path / "mnt").exists()


@pytest.mark.parametrize(
    ("mode", "words"), [("refuse", "credentials"), ("full", "is full"), ("shut", "not respond")]
)
def test_what_the_store_refuses_is_one_sentence(door, mode, words):
    remote = Remote("s3://trainings/refusing")
    door.mode = mode
    with pytest.raises(StoreUnavailable, match=words):
        remote.write("index/a.json", b"one")


def test_without_keys_the_credentials_are_named(door, monkeypatch, tmp_path):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(StoreUnavailable, match="credentials"):
        Remote("s3://trainings/runs").listing("index")


def test_a_server_that_is_not_there_does_not_answer(door, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StoreUnavailable, match="does not respond"):
        Remote("s3://trainings/runs").listing("index")
