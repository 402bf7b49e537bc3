"""A run as a Hugging Face folder: read again here, and by Transformers where it is installed."""

from __future__ import annotations

import io
import json
import random
import zipfile
from importlib.util import find_spec

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from tests.export.exported import small, untrained
from tests.export.test_asking import EXPERIMENTS
from tests.models.variants import S, T
from tests.training.test_loop import experiment
from tfm_core.cli import main
from tfm_core.config import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ViTConfig,
)
from tfm_core.config.shape import ImageShape, TextShape
from tfm_core.data.shape import data_shape
from tfm_core.data.text import text_task
from tfm_core.export import hugging_face
from tfm_core.export.exports import EXPORTS
from tfm_core.export.opening import open_run
from tfm_core.export.tokenizer_json import both, reading, writing
from tfm_core.inspect.source.carried import carried
from tfm_core.models.build import build_model
from tfm_core.presets import PRESETS
from tfm_core.pretrained.architectures import ARCHITECTURES, Unexportable, fit
from tfm_core.pretrained.model import check_folder, load_model
from tfm_core.pretrained.tokenizer import read_words
from tfm_core.pretrained.writing import answer_of, first_target, tensors_of
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError

needs_transformers = pytest.mark.skipif(
    find_spec("transformers") is None, reason="Transformers is not installed"
)
TWO, ONE = TextShape(23, 29), TextShape(29, 29, one_vocabulary=True, has_source=False)
SQUARE = ImageShape(14, 3, 5)
SMALL = {"d_model": 24, "n_heads": 3, "d_ff": 20}
LLAMA = {"position": "rotary", "norm": "rmsnorm", "bias": False, "activation": "swiglu"}


def text(family, shape=TWO, **settings):
    return {
        "decoder-only": DecoderOnlyConfig,
        "encoder-only": EncoderOnlyConfig,
        "encoder-decoder": EncoderDecoderConfig,
    }[family].parse(SMALL | settings), shape


def vit(shape=SQUARE, **settings):
    return ViTConfig.parse(SMALL | {"patch_size": 7} | settings), shape


CASES = {
    "a GPT": text("decoder-only", ONE, position="learned", activation="gelu_tanh"),
    "a GPT of sources": text("decoder-only", n_layers=3),
    "a GPT without biases": text("decoder-only", ONE, bias=False, position="learned"),
    "a GPT of groups": text(
        "decoder-only", ONE, position="none", n_kv_heads=1, projection_bias=False,
        tie_embeddings=True,
    ),
    "a Llama": text("decoder-only", ONE, **LLAMA, n_kv_heads=1),
    "a tied Llama": text("decoder-only", ONE, **LLAMA, tie_embeddings=True),
    "a Llama of long texts": text(
        "decoder-only", ONE, **LLAMA, rope_theta=500.0, rope_scaling="llama3", rope_factor=4.0,
        rope_original_len=12,
    ),
    "a Llama with slower positions": text(
        "decoder-only", ONE, **LLAMA, rope_scaling="linear", rope_factor=3.0
    ),
    "a Mistral": text("decoder-only", ONE, **LLAMA, window=2, n_kv_heads=1),
    "a Qwen": text("decoder-only", ONE, **LLAMA, qk_norm=True, n_kv_heads=1),
    "a Qwen with wide heads": text(
        "decoder-only", ONE, **LLAMA, qk_norm=True, n_kv_heads=1, head_dim=14
    ),
    "a Qwen 2": text("decoder-only", ONE, **LLAMA, qkv_bias=True, n_kv_heads=1),
    "a Llama with narrow heads": text("decoder-only", ONE, **LLAMA, head_dim=4),
    "a Mixtral": text("decoder-only", ONE, **LLAMA, n_experts=3, n_kv_heads=1, window=2),
    "a Mixtral that asks three": text("decoder-only", ONE, **LLAMA, n_experts=4, top_k=3),
    "a Llama of GELU": text("decoder-only", ONE, **LLAMA | {"activation": "geglu"}),
    "a translator": text("encoder-decoder", n_encoder_layers=2, activation="relu", n_kv_heads=1),
    "a translator without biases": text(
        "encoder-decoder", n_decoder_layers=2, bias=False, position="learned", tie_embeddings=True
    ),
    "the first Transformer": text(
        "encoder-decoder", n_encoder_layers=2, norm_first=False, activation="relu"
    ),
    "the first Transformer, tied": text(
        "encoder-decoder", TextShape(29, 23), norm_first=False, tie_embeddings=True, bias=False
    ),
    "an encoder": text("encoder-only"),
    "an encoder of blanks": text(
        "encoder-only", TextShape(29, 29, mask_id=4), position="learned", tie_embeddings=True
    ),
    "a ViT": vit(pooling="cls"),
    "a ViT of waves": vit(ImageShape(14, 1, 5), pooling="cls", position="sinusoidal-2d"),
    "a ViT of means": vit(pooling="mean", position="sinusoidal-2d", bias=False),
}  # fmt: skip


def written(config, shape, folder):
    """A model with random weights, biases and norms too, and its folder."""
    torch.manual_seed(3)
    model = build_model(config, shape).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    found = fit(config, shape, length=S + T)
    save_file(tensors_of(model, found), folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(found.config))
    return model, found


def inputs_of(shape):
    return hugging_face.example(shape)


@pytest.mark.quick
@pytest.mark.parametrize("name", CASES)
def test_a_written_model_is_read_as_the_same_one(name, tmp_path):
    model, found = written(*CASES[name], tmp_path)
    checked = check_folder(tmp_path)
    assert (checked.config, checked.shape) == (found.plan.model, found.plan.shape)
    inputs = inputs_of(found.ours.shape)
    with torch.inference_mode():
        expected = model(*inputs)
        answer = answer_of(load_model(checked), found, inputs)
    assert expected.abs().max() > 0.5  # else a tolerance would say nothing
    torch.testing.assert_close(answer, expected, atol=1e-5, rtol=1e-5)


def test_every_architecture_is_compared_and_has_a_label():
    assert all(one.family.label for several in ARCHITECTURES.values() for one in several)
    named = {fit(*case, length=S).architecture.name for case in CASES.values()}
    assert named == {one.name for several in ARCHITECTURES.values() for one in several}


@needs_transformers
@pytest.mark.parametrize("name", CASES)
def test_transformers_answers_as_the_model(name, tmp_path):
    import transformers

    from tfm_core.data.torchvision_import import torchvision  # noqa: F401  it imports that: mended

    model, found = written(*CASES[name], tmp_path)
    auto = getattr(transformers, found.architecture.auto)
    theirs, report = auto.from_pretrained(tmp_path, output_loading_info=True)
    assert type(theirs).__name__ == found.architecture.model_class
    assert not any(report.values())  # every tensor has its place, and none is drawn
    theirs, inputs = theirs.eval(), inputs_of(found.ours.shape)
    with torch.inference_mode():
        torch.testing.assert_close(
            theirs_answer(theirs, found, inputs), model(*inputs), atol=1e-5, rtol=1e-5
        )


def theirs_answer(theirs, found, inputs):
    family, shape = found.ours.model.family, found.ours.shape
    if family == "vit":
        return theirs(pixel_values=inputs[0]).logits
    src, tgt_in = inputs
    if family == "encoder-decoder":
        logits = theirs(input_ids=src, decoder_input_ids=tgt_in).logits
    elif family == "encoder-only":
        logits = theirs(input_ids=src).logits[:, : tgt_in.size(1)]
    else:
        joined = torch.cat([src, tgt_in + first_target(found)], 1)
        logits = theirs(input_ids=joined).logits[:, src.size(1) :, first_target(found) :]
    return logits[..., : shape.tgt_vocabulary]


def test_a_bias_becomes_a_dimension_and_words_of_the_source_are_never_written(tmp_path):
    config, shape = CASES["a GPT of sources"]
    _model, found = written(config, shape, tmp_path)
    assert found.form.width == config.d_model + config.n_heads
    reread = load_model(check_folder(tmp_path))
    ids = torch.tensor([[5, 9, 24, 30]])
    with torch.inference_mode():
        shares = reread(ids[:, :0], ids).softmax(-1)
    assert shares[..., : shape.src_vocabulary].max() == 0
    assert found.config["eos_token_id"] == shape.src_vocabulary + 2


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (text("decoder-only", ONE, norm="rmsnorm"), ("GPT-2", "LayerNorm", "RMSNorm")),
        (text("decoder-only", ONE, **LLAMA | {"bias": True}), ("Llama", "Biases: off, not on")),
        (text("decoder-only", TWO, **LLAMA), ("Llama", "one vocabulary")),
        (text("decoder-only", ONE, window=3), ("window: 0, not 3",)),
        (text("decoder-only", ONE, **LLAMA | {"sink": "zero"}), ("Llama", "sink")),
        (
            text("decoder-only", ONE, n_experts=4),
            ("GPT-2", "Experts: 0, not 4, Experts per token: 0, not 2."),
        ),
        (
            text("decoder-only", ONE, **LLAMA | {"n_experts": 4, "top_k": 1}),
            ("Mixtral", "2, not 1"),
        ),
        (text("decoder-only", ONE, head_dim=10), ("GPT-2", "d_head: 8, not 10")),
        (text("decoder-only", ONE, mistakes="no-residuals"), ("Mistakes: none",)),
        (text("encoder-decoder", position="t5-bias"), ("Learned", "T5 bias")),
        (text("encoder-decoder", norm_first=False, norm="rmsnorm"), ("Marian", "LayerNorm")),
        (text("encoder-only", norm_first=False), ("Pre-norm: on, not off",)),
        (vit(stem="conv"), ("Stem", "Convolutional")),
        (text("encoder-only", TextShape(23, 29, head="mean", n_labels=4)), ("labels",)),
    ],
)
def test_what_stands_in_the_way_is_named_with_what_would_do(case, words):
    with pytest.raises(Unexportable) as caught:
        fit(*case, length=S)
    assert all(word in str(caught.value) for word in words)


def test_a_setting_that_changes_nothing_does_not_stand_in_the_way():
    fit(*text("decoder-only", ONE, rope_theta=500.0, rope_scaling="llama3"), length=S)
    fit(*text("decoder-only", ONE, **LLAMA | {"rope_factor": 3.0, "full_every": 2}), length=S)


def test_a_family_without_an_architecture_says_so():
    preset = PRESETS["translate-luong"].experiment
    with pytest.raises(Unexportable, match="family"):
        fit(preset.model, data_shape(preset), length=S)


RUNS = {
    "translate": "encoder-decoder", "addition": "decoder-only", "gpt-grammar": "decoder-only",
    "masked-words": "encoder-only",
}  # fmt: skip


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs")


def unpacked(content, folder):
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        file.extractall(folder)
    return folder


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_a_folder_with_its_tokenizer_and_card(name, store, tmp_path):
    run = untrained(store, small(PRESETS[name].experiment))
    export = next(one for one in EXPORTS if one.name == "hugging-face")
    assert export.refusal(run) is None
    folder = unpacked(export.make(run), tmp_path / "folder")
    checked = check_folder(folder)
    words = read_words(folder, n_words=checked.shape.src_vocabulary)
    data, task = carried(run.experiment), text_task(run.experiment.task)
    ids = task.src_vocabulary.encode(task.tokenize(data.example))
    found = words.cut(data.example).ids
    assert [one for one in found if one >= 4][: len(ids)] == ids
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert run.meta.name in card
    assert hugging_face.hugging_face_folder(run).worst < 1e-5


def test_the_command_line_writes_it(store, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    run = untrained(store, small(PRESETS["copy"].experiment))
    assert main(["export", run.id, "--hugging-face", "--out", str(tmp_path)]) == 0
    assert zipfile.is_zipfile(capsys.readouterr().out.strip().splitlines()[-1])


def test_a_run_that_cannot_be_one_is_refused(store):
    run = untrained(store, small(PRESETS["span-corruption"].experiment))
    export = next(one for one in EXPORTS if one.name == "hugging-face")
    assert "T5" in export.refusal(run)
    with pytest.raises(StudentError):
        export.make(run)


def test_an_exported_gpt_opens_as_a_run_that_answers_alike(store, tmp_path):
    from tfm_core.inspect.attention.trained import model_of

    run = untrained(store, small(PRESETS["gpt-grammar"].experiment))
    folder = unpacked(hugging_face.bundle(run), tmp_path / "folder")
    opened = open_run(folder, store)
    inputs = inputs_of(data_shape(run.experiment))
    with torch.inference_mode():
        expected, found = (model_of(one)[0](*inputs) for one in (run, opened))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert "Transformers" in hugging_face.refusal(opened)  # which has that folder already


def encoded(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_tokenizer_cuts_and_writes_as_its_task(name):
    chosen = EXPERIMENTS[name]
    data, task, rng = carried(chosen), text_task(chosen.task), random.Random(3)
    is_one = chosen.task.kind == "corpus"
    reader = reading(data.src, data.spelling, begins=is_one)
    writer = reader if is_one else writing(data.tgt, data.spelling)
    reader = Tokenizer.from_str(reader.to_str())
    for _ in range(100):
        pair = task.sample(rng)
        typed = task.join_src(pair.src or pair.tgt)
        expected = task.src_vocabulary.encode(task.tokenize(typed))
        assert encoded(reader, typed) == expected
        if data.spelling.join != "sentence":
            answer = writer.decode(task.tgt_vocabulary.encode(pair.tgt))
            assert answer == task.join_tgt(pair.tgt)


def test_hidden_words_are_numbered_in_their_order():
    chosen = EXPERIMENTS["span-corruption"]
    data, task = carried(chosen), text_task(chosen.task)
    typed = "the __ sees ___ an apple"
    expected = task.src_vocabulary.encode(task.tokenize(typed))
    assert encoded(reading(data.src, data.spelling), typed) == expected


def test_answers_of_a_joined_tokenizer_stand_behind_its_words():
    chosen = experiment("decoder-only", "addition")
    data = carried(chosen)
    tokenizer, _mark = both(data.src, data.tgt, data.spelling)
    ids = tokenizer.encode("12+34=").ids
    assert ids[-1] == len(data.src) + 1
    assert ids[:-1] == [data.src.index(one) for one in "12+34"]
    answer = [len(data.src) + data.tgt.index(one) for one in "46"]
    assert tokenizer.decode([*answer, len(data.src) + 2]) == "46"


@needs_transformers
@pytest.mark.parametrize("name", RUNS)
def test_transformers_writes_what_the_model_writes(name, store, tmp_path):
    import transformers

    from tfm_core.data.torchvision_import import torchvision  # noqa: F401  it imports that: mended
    from tfm_core.inspect.attention.trained import model_of

    run = untrained(store, small(PRESETS[name].experiment))
    folder = unpacked(hugging_face.bundle(run), tmp_path / "folder")
    found = hugging_face.hugging_face_folder(run).fit
    data = carried(run.experiment)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(data.example, return_tensors="pt")
    assert set(inputs) == {"input_ids", "attention_mask"}
    theirs = getattr(transformers, found.architecture.auto).from_pretrained(folder).eval()
    model, _step = model_of(run)
    src, first = inputs.input_ids, first_target(found)
    if name == "masked-words":
        assert theirs.config.id2label[4] == data.tgt[4]
        torch.testing.assert_close(theirs(**inputs).logits, model(src, src), atol=1e-5, rtol=1e-5)
        return
    tgt = torch.tensor([[1]])
    if name == "gpt-grammar":
        src, tgt = src[:, :0], src
    if name == "addition":
        src = src[:, :-1]
    with torch.inference_mode():
        for _ in range(5):
            tgt = torch.cat([tgt, model(src, tgt)[:, -1:].argmax(-1)], 1)
        answer = theirs.generate(
            **inputs, max_new_tokens=5, min_new_tokens=5, do_sample=False, eos_token_id=None,
        )[0]  # fmt: skip
    if name == "addition":
        answer = answer[src.size(1) :] - first
    assert answer.tolist() == tgt[0].tolist()
    if name == "translate":
        target = transformers.AutoTokenizer.from_pretrained(folder, subfolder="target")
        text = target.decode(answer, skip_special_tokens=True)
        task = text_task(run.experiment.task)
        assert text == task.join_tgt(task.tgt_vocabulary.decode(answer.tolist()))


WRITTEN = {
    **dict.fromkeys(
        ("translate", "dates", "reverse", "copy", "sort", "numbers"), "EncoderDecoderModel"
    ),
    **dict.fromkeys(
        ("addition", "addition-3", "gpt-grammar", "gpt-text", "gpt-2"), "GPT2LMHeadModel"
    ),
    **dict.fromkeys(("sort-at-once", "masked-words"), "MegatronBertForTokenClassification"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_preset_has_its_architecture(name):
    chosen = PRESETS[name].experiment
    found = fit(chosen.model, data_shape(chosen), length=40)
    assert found.architecture.model_class == WRITTEN[name]
