import secrets

import pytest

from tests.hosting.store import s3
from tests.runs.conftest import end_workers
from tfm_core.hosting.store import mirror, upload
from tfm_core.hosting.store.storage import remote_of
from tfm_core.runs.store import RunStore


@pytest.fixture(scope="session")
def s3_server():
    with s3.serving() as door:
        yield door


@pytest.fixture
def door(s3_server, monkeypatch):
    """An S3 server that is well, with an empty bucket."""
    import fsspec

    s3_server.mode = "open"
    for name, value in s3.KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    files = fsspec.filesystem("s3", skip_instance_cache=True)
    if not files.exists(s3.BUCKET):
        files.mkdir(s3.BUCKET)
    return s3_server


@pytest.fixture(params=["s3", "file", "memory"])
def url(request, tmp_path):
    """The address of an empty store."""
    if request.param == "s3":
        request.getfixturevalue("door")
        return f"s3://{s3.BUCKET}/{secrets.token_hex(4)}"
    if request.param == "memory":
        return f"memory://{secrets.token_hex(4)}"
    (tmp_path / "shared").mkdir()
    return f"file://{tmp_path / 'shared'}"


class Server:
    """What an app server has of a store: its folder of runs, and its mirror."""

    def __init__(self, root, url):
        self.store = RunStore(root, recorded=None)
        self.mirror = mirror.Mirror(root, url)
        self.url = url

    def turn(self):
        """Publish and fetch once; return what is wrong."""
        return self.mirror.turn()

    def run(self, run_id):
        return self.store.get(run_id)

    def ids(self):
        return {run.id for run in self.store.kept()}


@pytest.fixture
def servers(url, tmp_path, monkeypatch):
    """Two servers on one store."""
    yield from _two(url, tmp_path, monkeypatch)


@pytest.fixture
def on_s3(door, tmp_path, monkeypatch):
    """Two servers on one bucket."""
    yield from _two(f"s3://{s3.BUCKET}/{secrets.token_hex(4)}", tmp_path, monkeypatch)


def _two(url, tmp_path, monkeypatch):
    monkeypatch.setenv("TFM_RUNS_URL", url)
    monkeypatch.setenv("TFM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(upload, "EVERY_SECONDS", 0.05)
    monkeypatch.setattr(upload, "LONGEST_WAIT", 0.2)
    two = Server(tmp_path / "one", url), Server(tmp_path / "two", url)
    yield two
    for server in two:
        end_workers(server.store)
    remote_of.cache_clear()
