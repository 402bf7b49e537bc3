"""A model by its id: what is asked of the Hub, and what is said where it cannot be had."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from tests.pretrained.with_tokenizer import folder_with_tokenizer
from tfm_core.cli.entry import main
from tfm_core.data.opened_folder import Unopenable
from tfm_core.pretrained import hub
from tfm_core.runs import RunStore

NAME = "somebody/tiny-gpt2"


class RepositoryNotFoundError(OSError):
    """As the package's own error is called."""


class FakeHub(ModuleType):
    """Stands for the package: holds one model, which lies in a folder."""

    def __init__(self, folder):
        super().__init__("huggingface_hub")
        self.path, self.asked, self.error = folder, [], None
        self.HfApi = lambda: self

    def model_info(self, name, *, files_metadata):
        assert files_metadata
        if self.error is not None:
            raise self.error
        files = [*self.path.iterdir(), self.path / "pytorch_model.bin"]
        siblings = [
            SimpleNamespace(
                rfilename=one.name, size=one.stat().st_size if one.is_file() else 10**12
            )
            for one in files
        ]
        return SimpleNamespace(sha="abc", siblings=siblings)

    def snapshot_download(self, name, *, revision, allow_patterns):
        self.asked.append((name, revision, allow_patterns))
        return str(self.path)


@pytest.fixture
def fake(tmp_path, monkeypatch):
    made = FakeHub(folder_with_tokenizer("gpt2", tmp_path / "gpt2"))
    monkeypatch.setitem(sys.modules, "huggingface_hub", made)
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    return made


def test_a_model_is_downloaded_by_its_id_and_opened(fake, capsys):
    assert main(["open", NAME]) == 0
    said = capsys.readouterr()
    run = RunStore().get(said.out.strip())
    assert run.meta.name == "tiny-gpt2"
    assert f"{NAME} on the Hub" in said.err
    ((name, revision, patterns),) = fake.asked
    assert (name, revision) == (NAME, "abc")
    assert set(patterns) == {
        "config.json",
        "model.safetensors",
        "model.safetensors.index.json",
        "model-*-of-*.safetensors",
        "tokenizer.json",
        "vocab.txt",
        "vocab.json",
        "merges.txt",
        "tokenizer_config.json",
        "added_tokens.json",
        "preprocessor_config.json",
    }


def test_a_folder_with_tokenizer_that_name_is_opened_without_the_hub(fake, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert main(["open", "gpt2"]) == 0


@pytest.mark.parametrize("name", ["/gpt2", "../gpt2", "a/b/c", "a b", "", "~/gpt2", "x" * 200])
def test_what_is_no_id_is_not_asked_for(name, fake):
    assert not hub.is_id(name)


def test_without_the_package_a_sentence_says_how_to_get_it(fake, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(Unopenable, match=r"pip install -r requirements-hub\.txt"):
        hub.find_model(NAME, is_public=False)


def test_a_public_server_downloads_nothing(fake):
    with pytest.raises(Unopenable, match="a public server does not download models"):
        hub.find_model(NAME, is_public=True)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (RepositoryNotFoundError("401"), "The Hub has no public model somebody/tiny-gpt2"),
        (ConnectionError("no route to host\nmore"), "cannot be reached: no route to host"),
        (ValueError(""), "cannot be reached: ValueError"),
    ],
)
def test_what_goes_wrong_with_the_hub_is_said(error, sentence, fake):
    fake.error = error
    with pytest.raises(Unopenable, match=sentence):
        hub.find_model(NAME, is_public=False)


def test_a_mistake_of_ours_is_not_taken_for_one_of_the_hub(fake):
    fake.error = KeyError("sha")
    with pytest.raises(KeyError):
        hub.find_model(NAME, is_public=False)


def test_weights_beyond_the_limit_or_without_safetensors_are_not_downloaded(fake):
    with pytest.raises(Unopenable, match="the limit is"):
        hub.find_model(NAME, is_public=False, most=100)
    (fake.path / "model.safetensors").unlink()
    with pytest.raises(Unopenable, match="has no safetensors weights"):
        hub.find_model(NAME, is_public=False)
    assert not fake.asked
