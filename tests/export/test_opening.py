"""A Hugging Face folder becomes a run that is looked into, or nothing at all."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.pretrained.models_of_transformers import answer
from tests.pretrained.with_tokenizer import (
    BEGIN,
    CLS,
    SEP,
    UNKNOWN,
    UNKNOWN_PIECE,
    folder_with_tokenizer,
)
from tfm_core.data import opened_task as tasks
from tfm_core.data.opened_folder import Unopenable
from tfm_core.data.tasks import text_task
from tfm_core.data.user_data import sets
from tfm_core.decoding import SamplingConfig
from tfm_core.export.bundle import bundle
from tfm_core.export.opening import open_run, size_of, unzipped
from tfm_core.inspect.attention.example import captured, look_at_picture, look_at_text
from tfm_core.inspect.attention.pictures import explain_picture
from tfm_core.inspect.attention.trained import inputs_of, model_of
from tfm_core.inspect.generation import next_token, write
from tfm_core.inspect.generation_source import source_of
from tfm_core.inspect.knockouts.measure import score_without
from tfm_core.inspect.knockouts.parts import heads_of
from tfm_core.inspect.text.language_model import read_with_lens, surprisals
from tfm_core.pretrained.model import check_folder, load_model
from tfm_core.pretrained.pictures import PREPROCESSOR
from tfm_core.probe.capture import capture
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError
from tfm_core.trace.subject import subject
from tfm_core.trace.trace import trace

WRITERS = ("gpt2", "gpt2-untied", "llama", "llama-tied", "llama-grouped")
READERS, VIEWERS = ("bert",), ("vit",)
ANSWERERS = ("t5", "t5-untied", "t5-gated", "t5-narrow")
GREEDY = SamplingConfig(temperature=0)


@pytest.fixture
def opened(store, tmp_path):
    def make(name, *, preprocessor=None, **config):
        folder = folder_with_tokenizer(name, tmp_path / name, **config)
        if preprocessor is not None:
            (folder / PREPROCESSOR).write_text(json.dumps(preprocessor))
        return open_run(folder, store), load_model(check_folder(folder))

    return make


def left(store: RunStore) -> list[Path]:
    return list(store.root.iterdir()) if store.root.is_dir() else []


@pytest.mark.parametrize("name", [*WRITERS, *READERS, *VIEWERS, *ANSWERERS])
def test_the_run_has_the_model_of_the_folder(name, opened, store):
    run, expected = opened(name)
    model, step = model_of(run)
    config = run.experiment.model
    assert torch.equal(answer(config, model), answer(config, expected))
    assert (step, run.status.state, run.damage, run.meta.name) == (0, "opened", None, name)
    assert [each.id for each in store.list()] == [run.id]
    n_tied = len(list(model.named_parameters(remove_duplicate=False)))
    assert n_tied == len(list(expected.named_parameters(remove_duplicate=False)))
    assert len(list(model.parameters())) == len(list(expected.parameters()))


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_its_snapshot_is_what_the_model_attends_to(name, opened):
    run, _model = opened(name)
    probe, snapshot = run.probe(), run.snapshot(0)
    assert run.snapshot_steps() == [0]
    for number, item in enumerate(probe.items):
        for module, maps in attention_on(run, item).items():
            n_queries, n_keys = maps.shape[1:]
            kept = snapshot.attention[module][number]
            np.testing.assert_allclose(kept[:, :n_queries, :n_keys], maps, atol=1e-3)
            assert not kept[:, n_queries:].any()


def attention_on(run, item):
    model, _step = model_of(run)
    with capture(model, only={"weights", "mask"}) as cache:
        model(*inputs_of(run, item))
    return captured(run.experiment, item, cache)["attention"]


def test_typed_texts_are_cut_into_their_tokens_and_written_to_the_end(opened):
    run, model = opened("gpt2")
    example = look_at_text(run, "the cat")
    assert example.item["tgt"] == ["the", " ", "c", "a", "t"]
    ids = torch.tensor([[BEGIN, 34, 27, 3, 1, 20]])
    weights = example.attention["decoder.layers.0.self_attention"]
    assert weights.shape == (3, 6, 6)
    with torch.inference_mode():
        logits = model(ids[:, :0], ids)[0].softmax(-1)
    read, _says, probability, _final = read_with_lens(run, "the cat")
    assert read[0] == "<|end|>"
    np.testing.assert_allclose(probability[-1], logits.max(-1).values, rtol=1e-4)
    found = surprisals(run, "the cat")
    expected = -logits[range(5), ids[0, 1:]].log()
    np.testing.assert_allclose(found["nats"], expected, rtol=1e-4)
    task = text_task(run.experiment.task)
    tokens = task.tokenize("안 the")
    assert tokens == ("안 1/3", "안 2/3", "안 3/3", " ", "the")
    assert task.join_tgt(tokens) == "안 the"
    assert len(set(task.tgt_vocabulary.tokens)) == len(task.tgt_vocabulary) == 37
    source = source_of(run, "the")
    tokens = write(source, GREEDY, n=6).tokens
    written, expected = [*source.prompt, *(token.own.id for token in tokens)], [*source.prompt]
    with torch.inference_mode():
        while len(expected) < len(written):
            read = torch.tensor([[BEGIN, *expected]])
            expected.append(int(model(read[:, :0], read)[0, -1].argmax()))
    assert written == expected
    with pytest.raises(StudentError, match="no token for T é"):
        look_at_text(run, "The café")
    assert BEGIN not in written[:-1]
    assert next_token(source, (), GREEDY)[1]["all"] == 37  # no token of it is never written


def test_a_text_of_an_encoder_has_the_tokens_around_it(opened):
    run, _model = opened("bert")
    example = look_at_text(run, "the cats zebra")
    assert example.item["src"] == ["[CLS]", "the", "cat", "##s", "[UNK]", "[SEP]"]
    words = text_task(run.experiment.task).src_vocabulary
    assert words.encode(example.item["src"]) == [CLS, 4, 5, 6, UNKNOWN, SEP]
    assert example.attention["encoder.layers.1.self_attention"].shape == (3, 6, 6)


def test_a_head_is_knocked_out_of_a_language_model(opened):
    run, _model = opened("llama")
    whole = score_without(run, (), "zero", 4)
    without = score_without(run, heads_of(run.experiment)[:1], "zero", 4)
    assert whole.n > 0
    assert whole.loss != without.loss


def test_nothing_is_trained_of_it_and_it_goes_into_no_zip(opened, store):
    run, _model = opened("gpt2")
    with pytest.raises(StudentError, match="not trained here"):
        store.fork(run.id, steps=100)
    with pytest.raises(StudentError, match="not trained here"):
        store.create(run.experiment)
    assert len(store.list()) == 1
    with pytest.raises(StudentError, match="has no zip"):
        bundle(run)


def test_its_size_is_said_before_a_weight_is_read(tmp_path):
    folder = folder_with_tokenizer("gpt2", tmp_path / "gpt2")
    assert "GPT-2" in size_of(folder)
    with pytest.raises(Unopenable, match="the limit is"):
        size_of(folder, most=1000)


def test_of_a_zip_only_the_files_at_its_top_are_taken(tmp_path):
    made = {
        "config.json": "{}",
        "model.safetensors": "w",
        "notes.py": "x",
        "deeper/vocab.json": "d",
    }
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        for name, text in made.items():
            archive.writestr(name, text)
    with unzipped(tmp_path / "model.zip") as folder:
        assert {path.name for path in folder.rglob("*")} == {"config.json", "model.safetensors"}


def test_of_a_training_the_newest_checkpoint_opens_under_its_name(tmp_path, store, capsys):
    sources = {"checkpoint-9": "gpt2-untied", "checkpoint-100": "gpt2", "checkpoint-x": "llama"}
    for called, name in sources.items():
        folder_with_tokenizer(name, tmp_path / "mine" / called)
    run = open_run(tmp_path / "mine", store)
    assert run.meta.name == "mine, checkpoint-100"
    assert run.experiment.model.tie_embeddings
    assert "the newest checkpoint, checkpoint-100" in str(size_of(tmp_path / "mine"))
    assert "newest" not in str(size_of(tmp_path / "mine/checkpoint-9"))
    assert open_run(tmp_path / "mine/checkpoint-9", store).meta.name == "mine, checkpoint-9"
    (tmp_path / "none" / "checkpoint-9").mkdir(parents=True)
    with pytest.raises(Unopenable, match=r"no config\.json"):
        open_run(tmp_path / "none", store)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("somebody/kind", "kind"),
        ("C:\\mine\\", "mine"),
        (None, "above"),
        ("", "above"),
        (3, "above"),
    ],
)
def test_a_folder_called_model_is_called_after_what_it_holds(source, name, tmp_path, store):
    folder = folder_with_tokenizer("gpt2", tmp_path / "above/model", _name_or_path=source)
    assert open_run(folder, store).meta.name == name
    assert open_run(folder, store, name="chosen").meta.name == "chosen"


def test_a_number_that_is_none_leaves_nothing_behind(tmp_path, store):
    folder = folder_with_tokenizer("gpt2", tmp_path / "gpt2")
    tensors = load_file(folder / "model.safetensors")
    tensors["transformer.ln_f.weight"][3] = float("nan")
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(Unopenable, match="NaN"):
        open_run(folder, store)
    assert not left(store)


def test_a_folder_without_a_tokenizer_is_refused(tmp_path, store):
    folder = folder_with_tokenizer("bert", tmp_path / "bert")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(Unopenable, match=r"This folder has no tokenizer\.json"):
        open_run(folder, store)
    assert not left(store)


def test_a_tokenizer_that_is_gone_is_a_sentence(opened):
    run, _model = opened("gpt2")
    for path in run.folder.glob("vocabulary/*/tokenizer.json"):
        path.write_text(json.dumps({}))
    tasks._found.cache_clear()
    with pytest.raises(StudentError, match="tokenizer"):
        look_at_text(run, "the cat")


def test_another_folder_of_runs_has_its_own_tokenizers(opened, tmp_path):
    run, _model = opened("gpt2")
    with sets.below(tmp_path / "elsewhere"), pytest.raises(StudentError, match="tokenizer"):
        text_task(run.experiment.task).tokenize("the cat")


def test_a_picture_is_scaled_as_the_folder_says_and_gets_the_names_of_its_classes(opened, tmp_path):
    names = dict(enumerate(["tabby cat", "espresso", "LABEL_2", "suit", "missile"]))
    run, model = opened("vit", preprocessor={"image_mean": [0.1, 0.2, 0.3]}, id2label=names)
    assert run.experiment.task.class_names == (
        "tabby cat",
        "espresso",
        "LABEL 2",
        "suit",
        "missile",
    )
    probe, snapshot = run.probe(), run.snapshot(0)
    mean = torch.tensor([0.1, 0.2, 0.3])[:, None, None]
    pixels = (torch.tensor(probe.images) / 255 - mean) / 0.5
    with torch.inference_mode():
        expected = model(pixels).softmax(-1)
    np.testing.assert_allclose(snapshot.probabilities, expected, atol=1e-3)
    example = look_at_picture(run, probe.images[1])
    np.testing.assert_allclose(example.probabilities, expected[1], atol=1e-5)
    kept = snapshot.attention["encoder.layers.1.self_attention"][1]
    maps = example.attention["encoder.layers.1.self_attention"]
    assert maps.shape == (3, 5, 5)
    np.testing.assert_allclose(kept, maps, atol=1e-3)


def test_a_picture_is_explained_measured_on_nothing_and_of_its_own_size(opened):
    run, _model = opened("vit")
    _step, _target, probabilities, maps = explain_picture(run, run.probe().images[0])
    assert {values.shape for values in maps.values()} == {(2, 2)}
    assert sum(probabilities) == pytest.approx(1, abs=1e-5)
    with pytest.raises(StudentError, match="pictures are not here"):
        score_without(run, (), "zero", 4)
    with pytest.raises(StudentError, match="this run reads"):
        look_at_picture(run, np.zeros((3, 28, 28), np.uint8))


@pytest.mark.parametrize(
    ("name", "config", "words"),
    [
        ("gpt2", {"bos_token_id": None, "eos_token_id": 50256}, "begins or ends"),
        ("vit", {"image_size": 15}, "image_size 15"),
        ("vit", {"image_size": 21}, "does not fit config.json"),
        ("vit", {"num_channels": 4}, "does not fit config.json"),
        ("vit", {"id2label": {"0": "cat"}}, "does not fit config.json"),
        (
            "vit",
            {"id2label": {"0": "a", "1": "b", "2": "c", "3": "d", "5": "e"}},
            "no name for class 4",
        ),
        ("t5", {"decoder_start_token_id": None, "pad_token_id": None}, "begins or ends"),
        ("t5", {"eos_token_id": None}, "end token"),
        ("t5", {"eos_token_id": 36}, "end token"),
        ("t5", {"d_kv": 5}, "does not fit config.json"),
        ("t5", {"feed_forward_proj": "gated-silu"}, "feed_forward_proj is gated-silu"),
        ("t5", {"relative_attention_num_buckets": 16}, "relative_attention_num_buckets"),
    ],
)
def test_a_folder_that_does_not_fit_leaves_nothing_behind(name, config, words, tmp_path, store):
    with pytest.raises(Unopenable, match=words):
        open_run(folder_with_tokenizer(name, tmp_path / name, **config), store)
    assert not left(store)


def test_an_answer_is_what_the_model_writes_and_nobody_knows_the_truth(opened):
    run, model = opened("t5-untied")
    probe, snapshot = run.probe(), run.snapshot(0)
    words = text_task(run.experiment.task).src_vocabulary
    for item, tokens in zip(probe.items, snapshot.tokens, strict=True):
        read, written = torch.tensor([words.encode(item["src"])]), [BEGIN]
        assert item["src"][-1] == "</s>"
        with torch.inference_mode():
            while len(written) <= len(tokens):
                written.append(int(model(read, torch.tensor([written]))[0, -1].argmax()))
        assert words.encode(tokens) == written[1:]
        assert list(tokens)[: len(item["tgt"])] == item["tgt"]
    example = look_at_text(run, "the cat sits.")
    assert example.item["src"] == [" the", " cat", " sits", ".", "</s>"]
    assert example.attention["decoder.layers.2.cross_attention"].shape[-1] == 5
    assert "truth" not in example.item


def test_it_translates_a_typed_text(opened):
    run, _model = opened("t5-gated")
    writing = write(source_of(run, "the cat"), GREEDY, seed=0, n=7)
    assert writing.source.truth is None
    assert not {BEGIN, UNKNOWN_PIECE} & set(writing.source.vocabulary.encode(writing.words))


@pytest.mark.parametrize("name", ["t5", "t5-gated", "t5-narrow"])
def test_the_walk_of_an_opened_encoder_decoder_is_made_by_its_code(name, opened):
    run, model = opened(name)
    looked = subject(run.experiment, model, items=run.probe().items)
    for step in trace(looked):
        names = {**step.names, **{one.name: one.value for one in step.inputs}}
        with torch.no_grad():
            exec(step.code, names)
        for one in step.outputs:
            torch.testing.assert_close(names[one.name], one.value, rtol=1e-4, atol=1e-5)
