"""A run as a Hugging Face folder: read again here, and by Transformers where it is installed."""

import json
import random
import zipfile
from importlib.util import find_spec

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from tests.export.exported import small, unpacked, untrained
from tests.export.test_asking import EXPERIMENTS
from tests.models.variants import S, T
from tfm_core.choices.config import DecoderOnlyConfig, ViTConfig
from tfm_core.choices.config.shape import ImageShape, TextShape
from tfm_core.choices.presets import PRESETS
from tfm_core.cli import main
from tfm_core.data.opened_folder import read_tokenizer
from tfm_core.data.tasks import data_shape, text_task
from tfm_core.export import hugging_face
from tfm_core.export.exports import EXPORTS
from tfm_core.export.tokenizer_json import both, one_text
from tfm_core.models.build import build_model
from tfm_core.pretrained.architectures import ARCHITECTURES, Unexportable, fit
from tfm_core.pretrained.model import check_folder, load_model
from tfm_core.pretrained.writing import answer_of, first_target, tensors_of
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError
from tfm_core.trace.source.carried import carried

needs_transformers = pytest.mark.skipif(
    find_spec("transformers") is None, reason="Transformers is not installed"
)
TWO, ONE = TextShape(23, 29), TextShape(29, 29, one_vocabulary=True, has_source=False)
SQUARE = ImageShape(14, 3, 5)
SMALL = {"d_model": 24, "n_heads": 3, "d_ff": 20}
LLAMA = {"position": "rotary", "norm": "rmsnorm", "bias": False, "activation": "swiglu"}


def text(shape=TWO, **settings):
    return DecoderOnlyConfig.parse(SMALL | settings), shape


def vit(shape=SQUARE, **settings):
    return ViTConfig.parse(SMALL | {"patch_size": 7} | settings), shape


CASES = {
    "a GPT": text(ONE, position="learned", activation="gelu_tanh"),
    "a GPT of sources": text(n_layers=3),
    "a GPT without biases": text(ONE, bias=False, position="learned"),
    "a GPT of groups": text(
        ONE, position="none", n_kv_heads=1, projection_bias=False, tie_embeddings=True
    ),
    "a Llama": text(ONE, **LLAMA, n_kv_heads=1),
    "a tied Llama": text(ONE, **LLAMA, tie_embeddings=True),
    "a Llama of long texts": text(
        ONE, **LLAMA, rope_theta=500.0, rope_scaling="llama3", rope_factor=4.0, rope_original_len=12
    ),
    "a Llama with slower positions": text(ONE, **LLAMA, rope_scaling="linear", rope_factor=3.0),
    "a Llama with narrow heads": text(ONE, **LLAMA, head_dim=4),
    "a Llama of GELU": text(ONE, **LLAMA | {"activation": "geglu"}),
    "a ViT": vit(pooling="cls"),
    "a ViT of waves": vit(ImageShape(14, 1, 5), pooling="cls", position="sinusoidal-2d"),
}


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


def test_architectures_are_compared_and_hidden_words_are_in_their_order():
    assert all(one.reader.label for one in ARCHITECTURES)
    named = {fit(*case, length=S).architecture.name for case in CASES.values()}
    assert named == {one.name for one in ARCHITECTURES}
    fit(*text(ONE, rope_theta=500.0, rope_scaling="llama3"), length=S)
    fit(*text(ONE, **LLAMA | {"rope_factor": 3.0, "full_every": 2}), length=S)
    chosen = EXPERIMENTS["span-corruption"]
    task = text_task(chosen.task)
    typed = "the __ sees ___ an apple"
    expected = task.src_vocabulary.encode(task.tokenize(typed))
    assert encoded(tokenizer_of(chosen)[0], typed) == expected


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
    if found.ours.model.family == "vit":
        return theirs(pixel_values=inputs[0]).logits
    src, tgt_in = inputs
    joined = torch.cat([src, tgt_in + first_target(found)], 1)
    return theirs(input_ids=joined).logits[:, src.size(1) :, first_target(found) :]


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
        (text(ONE, norm="rmsnorm"), ("GPT-2", "LayerNorm", "RMSNorm")),
        (text(ONE, **LLAMA | {"bias": True}), ("Llama", "Biases: off, not on")),
        (text(TWO, **LLAMA), ("Llama", "one vocabulary")),
        (text(ONE, window=3), ("window: 0, not 3",)),
        (text(ONE, **LLAMA | {"sink": "zero"}), ("Llama", "sink")),
        (text(ONE, d_ff=0), ("feed-forward",)),
        (text(ONE, n_experts=4), ("GPT-2", "Experts: 0, not 4, Experts per token: 0, not 2.")),
        (text(ONE, **LLAMA, window=2), ("Llama", "window: 0, not 2")),
        (text(ONE, **LLAMA, n_experts=3), ("Llama", "Experts: 0, not 3")),
        (text(ONE, **LLAMA, qk_norm=True), ("Llama", "off, not on")),
        (text(ONE, **LLAMA, qkv_bias=True), ("Llama", "off, not on")),
        (text(ONE, head_dim=10), ("GPT-2", "d_head: 8, not 10")),
        (text(ONE, mistakes="no-residuals"), ("Mistakes: none",)),
        (vit(pooling="mean"), ("ViT", "Pooling")),
        (vit(stem="conv"), ("Stem", "Convolutional")),
    ],
)
def test_what_stands_in_the_way_is_named_with_what_would_do(case, words):
    with pytest.raises(Unexportable) as caught:
        fit(*case, length=S)
    assert all(word in str(caught.value) for word in words)


RUNS = ("addition", "gpt-grammar", "gpt-2")


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs")


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_a_folder_with_its_tokenizer_and_card(name, store, tmp_path):
    run = untrained(store, small(PRESETS[name].experiment))
    export = next(one for one in EXPORTS if one.name == "hugging-face")
    assert export.refusal(run) is None
    folder = unpacked(export.make(run), tmp_path / "folder")
    checked = check_folder(folder)
    words = read_tokenizer(folder, n_words=checked.shape.src_vocabulary)
    data, task = carried(run.experiment), text_task(run.experiment.task)
    ids = task.src_vocabulary.encode(task.tokenize(data.example))
    found = words.cut(data.example)
    assert [one for one in found if one >= 4][: len(ids)] == ids
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert run.meta.name in card
    assert hugging_face.hugging_face_folder(run).worst < 1e-5


def test_the_command_line_writes_it(store, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    run = untrained(store, small(PRESETS["addition"].experiment))
    assert main(["export", run.id, "--hugging-face", "--out", str(tmp_path)]) == 0
    assert zipfile.is_zipfile(capsys.readouterr().out.strip().splitlines()[-1])


def test_a_folder_without_a_tokenizer_is_said_not_to_open_again(
    store, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    monkeypatch.setattr(hugging_face, "_tokenizer", lambda fit, data: {})
    run = untrained(store, small(PRESETS["gpt-grammar"].experiment))
    assert main(["export", run.id, "--hugging-face", "--out", str(tmp_path / "mine.zip")]) == 0
    assert "cannot open it" in capsys.readouterr().err
    assert main(["open", str(tmp_path / "mine.zip"), "--quiet"]) == 2
    assert "has no tokenizer.json" in capsys.readouterr().err


def test_a_run_that_cannot_be_one_is_refused(store):
    run = untrained(store, small(PRESETS["span-corruption"].experiment))
    export = next(one for one in EXPORTS if one.name == "hugging-face")
    assert "decoder-only" in export.refusal(run)
    with pytest.raises(StudentError):
        export.make(run)


@pytest.mark.parametrize("name", ["gpt-grammar", "memorising"])
def test_an_exported_model_opens_as_a_run_that_answers_alike(
    name, store, tmp_path, monkeypatch, capsys
):
    from tfm_core.inspect.attention.trained import model_of

    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    experiment = small(PRESETS[name].experiment)
    if name == "memorising":
        experiment = experiment.replace(model=experiment.model.model_dump() | {"pooling": "cls"})
    run = untrained(store, experiment)
    assert main(["export", run.id, "--hugging-face", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert not said.err  # it opens again
    path = said.out.strip()
    assert main(["open", path, "--quiet"]) == 0
    opened = store.get(capsys.readouterr().out.strip())
    assert path.endswith(f"{opened.meta.name}-hugging-face.zip")
    assert main(["import", path]) == 2
    assert "python -m tfm_core open" in capsys.readouterr().err
    bundled = tmp_path / "run.zip"
    assert main(["export", run.id, "--out", str(bundled)]) == 0
    assert main(["open", str(bundled)]) == 2
    assert "python -m tfm_core import" in capsys.readouterr().err
    inputs = inputs_of(data_shape(run.experiment))
    with torch.inference_mode():
        expected, found = (model_of(one)[0](*inputs) for one in (run, opened))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert "Transformers" in hugging_face.refusal(opened)  # which has that folder already


def encoded(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


def tokenizer_of(chosen):
    """The tokenizer of a language model, and the id of its first word of an answer."""
    data = carried(chosen)
    if chosen.task.kind == "corpus":
        return one_text(data.src, data.spelling), 0
    return both(data.src, data.tgt, data.spelling)[0], len(data.src)


WRITTEN_ON = [
    name for name, one in EXPERIMENTS.items() if "decoder-only" in one.task.facts.families
]


@pytest.mark.parametrize("name", WRITTEN_ON)
def test_a_tokenizer_cuts_and_writes_as_its_task(name):
    chosen = EXPERIMENTS[name]
    task, rng = text_task(chosen.task), random.Random(3)
    tokenizer, first = tokenizer_of(chosen)
    tokenizer = Tokenizer.from_str(tokenizer.to_str())
    for _ in range(100):
        pair = task.sample(rng)
        typed = task.join_src(pair.src or pair.tgt)
        expected = task.src_vocabulary.encode(task.tokenize(typed))
        assert encoded(tokenizer, typed) == expected
        answer = [first + one for one in task.tgt_vocabulary.encode(pair.tgt)]
        assert tokenizer.decode(answer) == task.join_tgt(pair.tgt)


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
    if name == "gpt-grammar":
        src, tgt = src[:, :0], src
    else:
        src, tgt = src[:, :-1], torch.tensor([[1]])
    with torch.inference_mode():
        for _ in range(5):
            tgt = torch.cat([tgt, model(src, tgt)[:, -1:].argmax(-1)], 1)
        answer = theirs.generate(
            **inputs, max_new_tokens=5, min_new_tokens=5, do_sample=False, eos_token_id=None
        )[0]
    assert (answer[src.size(1) :] - first).tolist() == tgt[0].tolist()
