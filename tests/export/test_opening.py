"""A Hugging Face folder becomes a run that is looked into, or nothing at all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.pretrained.models_of_transformers import IDS
from tests.pretrained.with_tokenizer import BEGIN, CLS, SEP, UNKNOWN, folder_with_tokenizer
from tfm_core.data.own import place
from tfm_core.data.text import text_task
from tfm_core.decoding import SamplingConfig
from tfm_core.export.bundle import bundle
from tfm_core.export.opening import open_run, size_of
from tfm_core.inspect.attention.example import captured
from tfm_core.inspect.attention.own_example import look_at_text
from tfm_core.inspect.attention.trained import inputs_of, model_of
from tfm_core.inspect.knockouts.measure import measured
from tfm_core.inspect.knockouts.parts import heads_of
from tfm_core.inspect.text.gpt_reading import look_through
from tfm_core.inspect.text.gpt_writing import Sample, next_token, prompt_ids, write_on
from tfm_core.inspect.text.surprisal import surprisals
from tfm_core.pretrained import task as tasks
from tfm_core.pretrained.folder import Unopenable
from tfm_core.pretrained.model import check_folder, load_model
from tfm_core.probe.capture import capture
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError

WRITERS = (
    "gpt2", "gpt2-untied", "llama", "llama-tied", "qwen3", "qwen3-wide", "qwen2", "mixtral",
)  # fmt: skip
READERS = ("bert", "roberta", "distilbert")
GREEDY = SamplingConfig(temperature=0)


@pytest.fixture
def store(tmp_path, monkeypatch) -> RunStore:
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "runs"))
    return RunStore(recorded=None)


@pytest.fixture
def opened(store, tmp_path):
    def make(name, **config):
        folder = folder_with_tokenizer(name, tmp_path / name, **config)
        return open_run(folder, store), load_model(check_folder(folder))

    return make


def left(store: RunStore) -> list[Path]:
    return list(store.root.iterdir()) if store.root.is_dir() else []


@pytest.mark.parametrize("name", [*WRITERS, *READERS])
def test_the_run_has_the_model_of_the_folder(name, opened, store):
    run, expected = opened(name)
    model, step = model_of(run)
    src = IDS[:, :0] if name in WRITERS else IDS
    with torch.inference_mode():
        assert torch.equal(model(src, IDS), expected(src, IDS))
    assert (step, run.status.state, run.damage, run.meta.name) == (0, "opened", None, name)
    assert [each.id for each in store.list()] == [run.id]
    n_tied = len(list(model.named_parameters(remove_duplicate=False)))
    assert n_tied == len(list(expected.named_parameters(remove_duplicate=False)))
    assert len(list(model.parameters())) == len(list(expected.parameters()))


@pytest.mark.parametrize("name", ["gpt2", "bert", "distilbert"])
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


def test_a_typed_text_is_cut_by_its_own_tokenizer_behind_its_own_token(opened):
    run, model = opened("gpt2")
    example = look_at_text(run, "the cat")
    assert example.item["tgt"] == ["the", " ", "c", "a", "t"]
    ids = torch.tensor([[BEGIN, 34, 27, 3, 1, 20]])
    weights = example.attention["decoder.layers.0.self_attention"]
    assert weights.shape == (3, 6, 6)
    with torch.inference_mode():
        logits = model(ids[:, :0], ids)[0].softmax(-1)
    reading = look_through(run, "the cat")
    assert reading.read[0] == "<|end|>"
    np.testing.assert_allclose(reading.lens.probability[-1], logits.max(-1).values, rtol=1e-4)
    found = surprisals(run, "the cat")
    expected = -logits[range(5), ids[0, 1:]].log()
    np.testing.assert_allclose(found.nats, expected, rtol=1e-4)


def test_bytes_that_are_no_character_stay_apart_and_are_joined_again(opened):
    run, _model = opened("gpt2")
    task = text_task(run.experiment.task)
    tokens = task.tokenize("안 the")
    assert tokens == ("ì", "ķ", "Ī", " ", "the")
    assert task.join_tgt(tokens) == "안 the"
    assert len(set(task.tgt_vocabulary.tokens)) == len(task.tgt_vocabulary) == 37


def test_it_writes_until_its_own_token_of_the_end(opened):
    run, model = opened("gpt2")
    ids = prompt_ids(run, "the")
    steps = list(write_on(run, [Sample(ids, ())], GREEDY, [0], n=6))
    written, expected = list(steps[-1][0].ids), list(ids)
    with torch.inference_mode():
        while len(expected) < len(written):
            read = torch.tensor([[BEGIN, *expected]])
            expected.append(int(model(read[:, :0], read)[0, -1].argmax()))
    assert written == expected
    assert BEGIN not in written[:-1]
    assert next_token(run, ids, GREEDY).n_all == 37  # no token of it is never written


def test_a_text_of_an_encoder_has_the_tokens_around_it(opened):
    run, _model = opened("bert")
    example = look_at_text(run, "the cats zebra")
    assert example.item["src"] == ["[CLS]", "the", "cat", "##s", "[UNK]", "[SEP]"]
    words = text_task(run.experiment.task).src_vocabulary
    assert words.encode(example.item["src"]) == [CLS, 4, 5, 6, UNKNOWN, SEP]
    assert example.attention["encoder.layers.1.self_attention"].shape == (3, 6, 6)


def test_a_head_is_knocked_out_of_a_language_model(opened):
    run, _model = opened("llama")
    whole = measured(run, (), "zero", 4)
    without = measured(run, heads_of(run.experiment)[:1], "zero", 4)
    assert whole.n > 0
    assert whole.loss != without.loss


def test_nothing_is_trained_of_it(opened, store):
    run, _model = opened("gpt2")
    with pytest.raises(StudentError, match="trained elsewhere"):
        store.fork(run.id, steps=100)
    with pytest.raises(StudentError, match="trained elsewhere"):
        store.create(run.experiment)
    assert len(store.list()) == 1


def test_it_goes_into_no_zip(opened):
    run, _model = opened("gpt2")
    with pytest.raises(StudentError, match="not from a zip"):
        bundle(run)


def test_its_size_is_said_before_a_weight_is_read(tmp_path):
    folder = folder_with_tokenizer("gpt2", tmp_path / "gpt2")
    assert "GPT-2" in size_of(folder)
    with pytest.raises(Unopenable, match="the limit is"):
        size_of(folder, most=1000)


def test_a_model_without_a_token_that_begins_a_text_is_refused(tmp_path, store):
    folder = folder_with_tokenizer("gpt2", tmp_path / "gpt2", bos_token_id=None, eos_token_id=50256)
    with pytest.raises(Unopenable, match="begins or ends"):
        open_run(folder, store)
    assert not left(store)


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
    with pytest.raises(Unopenable, match="need code"):
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
    with place.below(tmp_path / "elsewhere"), pytest.raises(StudentError, match="tokenizer"):
        text_task(run.experiment.task).tokenize("the cat")


@pytest.mark.parametrize("name", ["vit", "t5"])
def test_what_no_page_shows_is_refused(name, tmp_path, store):
    with pytest.raises(Unopenable, match="Pages cannot show"):
        open_run(folder_with_tokenizer(name, tmp_path / name), store)
    assert not left(store)
