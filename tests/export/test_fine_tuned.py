"""A fine-tuned language model leaves as a Hugging Face folder."""

import pytest
import torch

from tests.pretrained.with_tokenizer import folder_with_tokenizer
from tests.runs.test_fine_tuning import own, short, store  # noqa: F401  fixtures
from tfm_core.export.bundle import bundle
from tfm_core.export.exports import EXPORTS
from tfm_core.export.hugging_face import hugging_face_folder
from tfm_core.export.opening import open_run
from tfm_core.inspect.attention.trained import model_of
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
        return run

    return make


@pytest.mark.parametrize("part", [Part(), Part("lora", rank=2)])
def test_a_fine_tuned_language_model_leaves_as_a_folder_and_is_opened_again(
    trained,
    part,
    store,  # noqa: F811
    tmp_path,
):
    run = trained("gpt2", part)
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
    run = trained("bert", Part())
    with pytest.raises(StudentError, match="not as a zip"):
        bundle(run)
    export = next(one for one in EXPORTS if one.name == "hugging-face")
    assert "another layer" in str(export.refusal(run))
