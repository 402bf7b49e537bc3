"""A fine-tuned run leaves: LoRA in PEFT's layout, a language model as a Hugging Face folder."""

from __future__ import annotations

import io
import json
import zipfile

import pytest
import torch
from safetensors.torch import load

from tests.pretrained.with_tokenizer import folder_with_tokenizer
from tests.runs.test_fine_tuning import own, short, store  # noqa: F401  fixtures
from tfm_core.export.adapters import HEAD, LABELS, adapter_files, refusal
from tfm_core.export.bundle import bundle
from tfm_core.export.exports import EXPORTS
from tfm_core.export.hugging_face import hugging_face_folder
from tfm_core.export.opening import open_run
from tfm_core.inspect.attention.trained import model_of
from tfm_core.pretrained.adapters import CONFIG, WEIGHTS, load_adapters
from tfm_core.pretrained.model import check_folder, load_model
from tfm_core.runs.fine_tuning import Part, tuned
from tfm_core.runs.process.execute import execute
from tfm_core.sentences import StudentError

IDS = torch.tensor([[4, 5, 6, 4, 5], [5, 5, 4, 6, 4]])


@pytest.fixture
def trained(store, own, tmp_path):  # noqa: F811
    def make(name, part):
        kind = "labels" if name == "bert" else "text"
        folder = folder_with_tokenizer(name, tmp_path / name)
        run = store.create(short(tuned(open_run(folder, store), own(kind), part), 9))
        assert execute(run).state == "finished"
        return folder, run

    return make


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_adapters_on_the_opened_folder_answer_as_the_run(name, trained, tmp_path):
    folder, run = trained(name, Part("lora", rank=2))
    export = next(one for one in EXPORTS if one.name == "adapters")
    with zipfile.ZipFile(io.BytesIO(export.make(run))) as file:
        file.extractall(tmp_path / "adapters")
    checked = check_folder(folder)
    model = load_model(checked)
    plain = model(IDS if name == "bert" else IDS[:, :0], IDS)
    lora = load_adapters(model, checked.family, tmp_path / "adapters")
    assert (lora.rank, lora.alpha) == (2, 4.0)
    expected, _step = model_of(run)
    if name == "bert":
        keep = torch.ones(IDS.shape, dtype=torch.bool)[:, None, None]
        states = [
            one.encoder(one.segments(one.src_positions(one.src_embedding(IDS))), mask=keep)
            for one in (model, expected)
        ]
        torch.testing.assert_close(*states, atol=1e-5, rtol=1e-5)
        files = adapter_files(run)
        head = load(files[HEAD])
        assert torch.equal(head["weight"], expected.output.labels.weight)
        assert sorted(json.loads(files[LABELS])) == ["bad", "good"]
    else:
        found = model(IDS[:, :0], IDS)
        torch.testing.assert_close(found, expected(IDS[:, :0], IDS), atol=1e-5, rtol=1e-5)
        assert not torch.allclose(found, plain, atol=1e-3)
    values = json.loads((tmp_path / "adapters" / CONFIG).read_text())
    assert values["peft_type"] == "LORA"
    assert (tmp_path / "adapters" / WEIGHTS).is_file()


def test_a_fine_tuned_language_model_leaves_as_a_folder_and_is_opened_again(
    trained, store, tmp_path  # noqa: F811
):  # fmt: skip
    _folder, run = trained("gpt2", Part())
    files = hugging_face_folder(run).files
    out = tmp_path / "out"
    out.mkdir()
    for name, content in files.items():
        (out / name).write_bytes(content)
    again = open_run(out, store)
    one, other = model_of(run)[0], model_of(again)[0]
    torch.testing.assert_close(one(IDS[:, :0], IDS), other(IDS[:, :0], IDS), atol=1e-5, rtol=1e-5)
    assert again.experiment.task.tokenizer == run.experiment.task.tokenizer
    assert again.experiment.task.bos_id == run.experiment.task.bos_id


def test_what_cannot_leave_says_so(trained):
    _folder, run = trained("bert", Part())
    assert refusal(run) is not None
    with pytest.raises(StudentError, match="LoRA"):
        adapter_files(run)
    with pytest.raises(StudentError, match="zip of everything"):
        bundle(run)
    export = next(one for one in EXPORTS if one.name == "hugging-face")
    assert "another layer" in str(export.refusal(run))
