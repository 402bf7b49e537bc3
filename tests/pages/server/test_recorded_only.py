"""What a server of recorded runs alone answers: its files, and a sentence to all else."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pages import publish
from pages.app.runs import film
from pages.server.recorded_only import RecordedOnly
from tests.lacking import without
from tfm_core.runs.store import RECORDED, RunStore

ROOT = Path(__file__).resolve().parents[3]
BASE = "/some/base"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A server of the recorded runs, at its root and below a path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFM_RUNS_DIR", str(tmp_path_factory.mktemp("runs")))
        recorded = RecordedOnly(["camera"])
        routes = recorded.routes({"", BASE})
        app = Starlette(routes=routes, lifespan=lambda _app: recorded.written())
        with TestClient(app, follow_redirects=False) as asking:
            yield asking


def links(html: str) -> list[str]:
    return re.findall(r'(?:href|src)="([^"#:]+)"', html)


@pytest.mark.parametrize("base", ["", BASE])
def test_the_gallery_leads_to_every_recorded_run_and_all_it_names_is_there(client, base):
    first = client.get(f"{base}/")
    assert first.status_code == 200
    for run in film.recorded_runs():
        assert f'href="{run.id}/"' in first.text
        assert run.meta.name in first.text
    assert "To train, run the whole app" in first.text
    for link in links(first.text):
        assert client.get(f"{base}/{link}").status_code == 200, link


def test_the_page_of_a_run_has_its_film_and_the_way_back(client):
    page = client.get("/recorded-digits/")
    answers = [client.get(f"/recorded-digits/{link}") for link in links(page.text)]
    assert {answer.status_code for answer in answers} == {200}
    assert 'href="../"' in page.text
    assert "98.2% right (test)" in page.text
    assert 'id="part-view-0"' in page.text
    assert 'id="part-film"' in page.text


def test_what_is_not_here_is_answered_with_a_sentence_and_a_way_on(client):
    for path, root in [
        ("/train", "/"),
        (f"{BASE}/train?run=somebodys", f"{BASE}/"),
        ("/live/some-token/", "/"),
        ("/recorded-korean/events.jsonl", "/"),
        ("/recorded-korean/../../app.py", "/"),
        ("/recorded-korean/%2e%2e/index.html", "/"),
        ("/a%3Fb", "/"),
    ]:
        answer = client.get(path)
        assert answer.status_code == 404
        assert "this site only shows recorded runs." in answer.text
        assert f'href="{root}"' in answer.text
        for link in links(answer.text):
            assert client.get(link).status_code == 200, link


def test_a_path_without_its_slash_gets_it(client):
    for path, leads_to in (
        ("/recorded-korean?lang=en", "/recorded-korean/?lang=en"),
        (f"{BASE}/recorded-korean", f"{BASE}/recorded-korean/"),
        (f"{BASE}?run=recorded-korean", f"{BASE}/?run=recorded-korean"),
    ):
        assert client.get(path).headers["location"] == leads_to


def test_load_balancers_are_answered_where_they_ask(client):
    for path in ("/health", "/_stcore/health", f"{BASE}/health"):
        assert client.get(path).json()["ok"] is True


def test_no_page_may_ask_another_host(client):
    for path in ("/", "/recorded-korean/", "/train"):
        said = client.get(path).headers
        assert "default-src 'none'" in said["content-security-policy"]
        assert said["x-content-type-options"] == "nosniff"


def test_what_a_browser_has_is_not_sent_again(client):
    said = client.get("/").headers
    assert client.get("/", headers={"If-None-Match": said["etag"]}).status_code == 304


def test_the_whole_app_says_that_it_lacks_pytorch_and_what_to_do(tmp_path):
    environment = without({"torch"}, tmp_path) | {"TFM_RECORDED_ONLY": "0"}
    done = subprocess.run(
        [sys.executable, "-c", "import app"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "TFM_RECORDED_ONLY=1" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def damaged(tmp_path, monkeypatch):
    """Two recorded runs, one of them damaged, and a folder that is no run; the runs' folder."""
    folder = tmp_path / "recorded"
    for name in ("recorded-korean", "recorded-one-head"):
        shutil.copytree(RECORDED / name, folder / name)
    (folder / "recorded-one-head" / "experiment.json").write_text("{")
    (folder / "__pycache__").mkdir()
    monkeypatch.setattr(film, "RunStore", lambda: RunStore(tmp_path / "runs", recorded=folder))
    return folder


def test_a_damaged_run_is_missing_in_the_gallery_and_breaks_nothing_else(damaged):
    recorded = RecordedOnly([])
    app = Starlette(routes=recorded.routes({""}), lifespan=lambda _app: recorded.written())
    with TestClient(app) as asking:
        first = asking.get("/").text
        assert 'href="recorded-korean/"' in first
        assert "recorded-one-head" not in first
        assert "pycache" not in first
        assert asking.get("/recorded-korean/").status_code == 200
        assert asking.get("/recorded-one-head/").status_code == 503
        assert asking.get("/__pycache__/").status_code == 404


def test_a_site_is_written_without_the_damaged_run_which_is_named(damaged, tmp_path, capsys):
    site = tmp_path / "site"
    assert publish.main(["--recorded", "--to", str(site)]) == publish.FAILED
    error = capsys.readouterr().err
    assert error.startswith("recorded-one-head: This run is damaged")
    assert error.count("\n") == 1
    assert "recorded-one-head" not in (site / "index.html").read_text()
    assert (site / "recorded-korean" / "index.html").is_file()
