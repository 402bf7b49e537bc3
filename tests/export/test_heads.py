"""An encoder opens with its head: it names the label of a text, or the word that is hidden."""

import json
from importlib.util import find_spec

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from tests.pretrained.models_of_transformers import FOLDERS, IDS, make
from tests.pretrained.with_tokenizer import CLS, MASK, SEP, folder_with_tokenizer
from tfm_core.export.opening import open_run, size_of
from tfm_core.inspect.attention.example import look_at_text
from tfm_core.inspect.attention.trained import model_of
from tfm_core.pretrained import heads
from tfm_core.pretrained.model import check_folder
from tfm_core.sentences import StudentError

LABELS = {"0": "bad", "1": "good_one", "2": "so so"}


def classifier(target, *, rows=3, **config):
    """BERT with a classifier of texts, as ``BertForSequenceClassification`` is saved."""
    folder = folder_with_tokenizer("bert", target, **{"id2label": LABELS} | config)
    tensors = load_file(folder / "model.safetensors")
    drawn = torch.Generator().manual_seed(1)
    tensors = {f"bert.{name}": one for name, one in tensors.items()}
    tensors["classifier.weight"] = torch.randn(rows, 12, generator=drawn)
    tensors["classifier.bias"] = torch.randn(rows, generator=drawn)
    save_file(tensors, folder / "model.safetensors")
    return folder


def classifying_writer(target):
    """GPT-2 with a classifier of texts, as ``GPT2ForSequenceClassification`` is saved."""
    folder = folder_with_tokenizer("gpt2", target, id2label=LABELS)
    tensors = load_file(folder / "model.safetensors")
    tensors["score.weight"] = torch.randn(3, 12, generator=torch.Generator().manual_seed(1))
    save_file(tensors, folder / "model.safetensors")
    return folder


def scores(run, ids, *, hidden=None):
    """What the head of a run says of ids: of the whole text, or of a place."""
    model, _step = model_of(run)
    if run.experiment.model.family == "decoder-only":
        read = model.read(ids[:, :0], ids)[0][:, -1]
    else:
        read = model(ids, ids)
    read = read if hidden is None else read[:, hidden]
    head = heads.read_head(run.folder)
    with torch.inference_mode():
        return heads.logits_of(head, read, model.src_embedding.table.weight, run.experiment.model)


def test_a_classifier_says_its_labels(store, tmp_path):
    folder = classifier(tmp_path / "mine")
    tensors = load_file(folder / "model.safetensors")
    run = open_run(folder, store)
    pooled = load_file(FOLDERS / "bert" / "answer.safetensors")["answer"]  # by Transformers
    expected = pooled @ tensors["classifier.weight"].T + tensors["classifier.bias"]
    torch.testing.assert_close(scores(run, IDS), expected, atol=1e-4, rtol=0)
    example = look_at_text(run, "the cats")
    shares = scores(run, torch.tensor([[CLS, 4, 5, 6, SEP]])).softmax(-1)[0]
    names = ["bad", "good one", "so so"]
    order = shares.argsort(descending=True).tolist()
    assert example.answer == tuple(names[one] for one in order)
    assert example.confidence == pytest.approx(shares[order].numpy(), abs=1e-5)
    assert example.answer_text.startswith(f"{names[order[0]]} {shares.max():.0%}, ")
    snapshot = run.snapshot(0)
    assert {*map(frozenset, snapshot.tokens)} == {frozenset(names)}
    assert not check_folder(folder).notes


def test_a_classifier_of_the_last_token_says_its_labels(store, tmp_path):
    run = open_run(classifying_writer(tmp_path / "mine"), store)
    model, _step = model_of(run)
    ids = torch.tensor([[34, 27, 3, 1, 20]])
    with torch.no_grad():
        states = model.read(ids[:, :0], ids)[0]
    expected = states[0, -1] @ heads.read_head(run.folder)["labels.weight"].T
    example = look_at_text(run, "the cat")
    best = int(expected.argmax())
    assert example.answer[0] == ["bad", "good one", "so so"][best]
    assert example.confidence[0] == pytest.approx(float(expected.softmax(-1)[best]), abs=1e-5)
    assert all(set(row) == {"bad", "good one", "so so"} for row in run.snapshot(0).tokens)


@pytest.mark.parametrize("is_tied", [True, False])
def test_a_hidden_word_is_guessed(is_tied, store, tmp_path):
    folder = folder_with_tokenizer("bert-for-words", tmp_path / "mine", tie_word_embeddings=is_tied)
    tensors = load_file(folder / "model.safetensors")
    place, table = "cls.predictions", "bert.embeddings.word_embeddings.weight"
    if not is_tied:
        table = f"{place}.decoder.weight"
        tensors[table] = torch.randn(37, 12, generator=torch.Generator().manual_seed(1))
        save_file(tensors, folder / "model.safetensors")
    run = open_run(folder, store)
    x = load_file(FOLDERS / "bert-for-words" / "answer.safetensors")["answer"][:, 3]
    dense, norm = f"{place}.transform.dense", f"{place}.transform.LayerNorm"
    x = F.gelu(x @ tensors[f"{dense}.weight"].T + tensors[f"{dense}.bias"])
    x = F.layer_norm(x, (12,), tensors[f"{norm}.weight"], tensors[f"{norm}.bias"], 1e-12)
    expected = x @ tensors[table].T + tensors[f"{place}.bias"]
    torch.testing.assert_close(scores(run, IDS, hidden=3), expected, atol=1e-4, rtol=0)
    example = look_at_text(run, "the [MASK] the [MASK]")
    assert example.item["src"] == ["[CLS]", "the", "[MASK]", "the", "[MASK]", "[SEP]"]
    ids = torch.tensor([[CLS, 4, MASK, 4, MASK, SEP]])
    best = [scores(run, ids, hidden=at).softmax(-1).max() for at in (2, 4)]
    assert example.confidence[[0, 5]] == pytest.approx([float(one) for one in best], abs=1e-5)
    assert example.answer_text.count(" · ") == 1
    assert look_at_text(run, "the cat").answer is None
    probe = run.probe()
    assert all("[MASK]." in item["src_text"] for item in probe.items)
    assert all(len(row) == 5 for row in run.snapshot(0).tokens)


@pytest.mark.parametrize(
    ("rows", "config"),
    [
        (2, {}),
        (3, {"problem_type": "multi_label_classification"}),
        (1, {"id2label": {"0": "a number"}}),
    ],
)
def test_another_head_is_left_out_and_said(rows, config, store, tmp_path):
    folder = classifier(tmp_path / "mine", rows=rows, **config)
    assert "without its head (classifier)" in str(size_of(folder))
    run = open_run(folder, store)
    assert look_at_text(run, "the cat").answer is None


def test_the_names_of_the_first_bert_are_read_and_a_head_that_is_gone_is_said(store, tmp_path):
    folder = folder_with_tokenizer("bert-for-words", tmp_path / "mine")
    tensors = load_file(folder / "model.safetensors")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("Norm.bias", "Norm.beta"): one
        for name, one in tensors.items()
    }
    save_file(old, folder / "model.safetensors")
    run = open_run(folder, store)
    (run.folder / heads.FILE).unlink()
    with pytest.raises(StudentError, match="Open its folder again"):
        look_at_text(run, "the [MASK] cat")


@pytest.mark.skipif(find_spec("transformers") is None, reason="Transformers is not installed")
@pytest.mark.parametrize(
    "kind",
    ["BertForSequenceClassification", "BertForMaskedLM", "GPT2ForSequenceClassification"],
)
def test_it_scores_as_transformers_does(kind, store, tmp_path, monkeypatch):
    from tests.pretrained import models_of_transformers as made

    settings = {"num_labels": 3, "pad_token_id": 0, "bos_token_id": 0}
    settings |= made._GPT2 if kind.startswith("GPT2") else made.ENCODER
    family = kind.partition("For")[0]
    monkeypatch.setitem(made.MODELS, "mine", ((family, kind), settings, None))
    model = make("mine")
    folder = folder_with_tokenizer(family.lower(), tmp_path / "mine")
    model.save_pretrained(folder)
    run = open_run(folder, store)
    with torch.inference_mode():
        expected = model(input_ids=IDS).logits
    hidden = 3 if kind == "BertForMaskedLM" else None
    expected = expected if hidden is None else expected[:, hidden]
    torch.testing.assert_close(scores(run, IDS, hidden=hidden), expected, atol=1e-4, rtol=0)
    assert json.loads((folder / "config.json").read_text())["architectures"] == [kind]
