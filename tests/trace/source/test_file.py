"""The generated file, executed in a process that has torch alone, says what the model says."""

import ast
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from tests.anatomy.configurations import config_of, samples
from tests.fresh import some, spelled
from tests.models.variants import (
    CAPTION_SHAPE,
    SMALL,
    SRC_WORDS,
    TGT_WORDS,
    S,
    T,
    caption_batch,
    text_batch,
    text_config,
)
from tfm_core.choices.config import MODEL_CONFIGS, CaptionerConfig
from tfm_core.choices.config.shape import ImageShape, TextShape
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.models.build import build_model
from tfm_core.probe.capture import capture
from tfm_core.trace.source.file import FORMS, printed, source_code

IMAGES = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(2))
RUNNER = """
import importlib.util, json, sys, torch
for folder in json.load(open("cases.json")):
    answers = {}
    for form in ("written", "fused", "notebook-written", "notebook-fused"):
        spec = importlib.util.spec_from_file_location("generated", f"{folder}/{form}.py")
        generated = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(generated)
        model = generated.Model().eval()
        model.load_state_dict(generated.load(f"{folder}/checkpoint.safetensors"))
        inputs = torch.load(f"{folder}/inputs.pt")
        with torch.no_grad():
            answers[form] = model(*inputs)
            if form.endswith("written"):
                again, weights = model(*inputs, return_weights=True)
                answers[form.replace("written", "weights")] = weights
                assert torch.equal(again, answers[form])
    torch.save(answers, f"{folder}/answers.pt")
assert not [name for name in sys.modules if name.startswith(("tfm_core", "safetensors"))]
"""


def _settings(seed):
    return [(family, one) for family in MODEL_CONFIGS for one in samples(family, 2, seed)]


def _sampled():
    """(name, model, config, shape, inputs) of a few choices of settings."""
    for number, (family, settings) in enumerate(some(_settings(0), _settings)):
        shape, inputs = TextShape(SRC_WORDS, TGT_WORDS), text_batch()
        if family == "encoder-only" and settings.get("tie_embeddings"):
            shape = TextShape(TGT_WORDS, TGT_WORDS)
        if family in ("vit", "captioner"):
            settings = {"patch_size": 2, **settings}
            shape, inputs = ImageShape(6, 3, 5), (IMAGES,)
        if family == "captioner":
            shape, inputs = CAPTION_SHAPE, caption_batch()
        config = config_of(family, settings)
        name = f"{number} {family} {spelled(settings)}"
        yield name, build_model(config, shape), config, shape, inputs


def _special():
    """The same of ends and vocabularies that only some models have, and of published ends."""
    src, tgt_in = text_batch()
    config = text_config("encoder-only")
    few = (src[:, :3], tgt_in)  # more is answered than was read
    shape = TextShape(SRC_WORDS, TGT_WORDS)
    yield "slots", build_model(config, shape), config, shape, few
    for head, settings in (("mean", {}), ("cls", {"position": "learned", "bias": False})):
        config = MODEL_CONFIGS["encoder-only"].parse({**SMALL, **settings})
        shape = TextShape(SRC_WORDS, 7, head=head, n_labels=3)
        yield f"label {head}", build_model(config, shape), config, shape, text_batch()
        shape = replace(shape, n_hidden=5)
        yield f"label {head} hidden", build_model(config, shape), config, shape, text_batch()
    config, shape = text_config("encoder-only"), TextShape(17, 17, one_vocabulary=True)
    shape = replace(shape, head="states")
    yield "states", build_model(config, shape), config, shape, text_batch()
    config, shape = CaptionerConfig.parse({**SMALL, "patch_size": 2}), CAPTION_SHAPE
    shape = replace(shape, has_regions=True)
    yield "regions", build_model(config, shape), config, shape, caption_batch()
    for name in ("transformer-base", "bart-base", "bert-base", "gpt2-small"):
        config = ARCHITECTURES[name].model.replace(**SMALL)
        known = ARCHITECTURES[name].shape
        shape = replace(known, src_vocabulary=TGT_WORDS, tgt_vocabulary=TGT_WORDS)
        inputs = (src if shape.has_source else src[:, :0], tgt_in)
        yield name, build_model(config, shape), config, shape, inputs
    bert = ARCHITECTURES["bert-base"]
    for position in ("sinusoidal", "t5-bias"):
        config = bert.model.replace(**SMALL, position=position)
        shape = replace(bert.shape, src_vocabulary=TGT_WORDS, tgt_vocabulary=TGT_WORDS)
        yield f"segments {position}", build_model(config, shape), config, shape, text_batch()
    for settings in ({}, {"position": "learned", "tie_embeddings": True}, {"window": 2}):
        config = MODEL_CONFIGS["decoder-only"].parse({**SMALL, **settings})
        shape = TextShape(TGT_WORDS, TGT_WORDS, one_vocabulary=True, has_source=False)
        inputs = (src[:, :0], tgt_in)
        yield f"language model {settings}", build_model(config, shape), config, shape, inputs
    for family in ("encoder-decoder", "encoder-only", "decoder-only", "recurrent"):
        shape = TextShape(SRC_WORDS, TGT_WORDS, pad_id=None)
        config = text_config(family)
        long = F.pad(tgt_in, (0, S - T), value=3)
        yield f"no padding {family}", build_model(config, shape), config, shape, (src, long)


CASES = [*_sampled(), *_special()]


def joined(inputs, shape):
    """Source and target as the one sequence that a GPT reads, and where the target stands."""
    src, tgt_in = inputs
    ids = torch.zeros(len(src), src.size(1) + tgt_in.size(1), dtype=torch.long)
    places = []
    for row, (source, target) in enumerate(zip(src, tgt_in, strict=True)):
        real = source if shape.pad_id is None else source[source != shape.pad_id]
        written = target if shape.pad_id is None else target[target != shape.pad_id]
        both = torch.cat([real, shape.src_vocabulary + written])
        ids[row, : len(both)] = both
        places.append((row, len(real), len(written)))
    return ids, places


def read_by_file(config, shape, inputs):
    """What the generated model is called with: the inputs of its own family."""
    if config.family == "encoder-only":
        src, tgt_in = inputs
        n_slots = 0 if shape.head != "tokens" else max(0, tgt_in.size(1) - src.size(1))
        return (F.pad(src, (0, n_slots)),)
    if config.family != "decoder-only":
        return inputs
    return (inputs[1] if shape.one_vocabulary else joined(inputs, shape)[0],)


def of_family(config, shape, inputs, said, answer):
    """What the engine's model and the file say of the same places, in one order."""
    if config.family == "encoder-only" and shape.is_label:
        return said[:, 0, -shape.n_labels :], answer
    if config.family == "encoder-only" and shape.head in ("tokens", "states"):
        return said, answer[:, : inputs[1].size(1)]
    if config.family == "decoder-only" and not shape.one_vocabulary:
        places = joined(inputs, shape)[1]
        return (
            torch.cat([said[row, :n] for row, _first, n in places]),
            torch.cat([answer[row, first : first + n] for row, first, n in places]),
        )
    return said, answer


@pytest.fixture(scope="module")
def answers(tmp_path_factory, request):
    """What each generated file that is asked for answers, all executed in one clean process."""
    root = tmp_path_factory.mktemp("generated")
    same_file = (item for item in request.session.items if item.path == request.path)
    indices = [item.callspec.params["index"] for item in same_file if "index" in item.fixturenames]
    folders = [str(root / str(index)) for index in indices]
    for index, folder in zip(indices, map(Path, folders), strict=True):
        _name, model, config, shape, inputs = CASES[index]
        folder.mkdir()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        for form in FORMS:
            text = source_code(config, shape, form=form)
            (folder / f"{form}.py").write_text(text, encoding="utf-8")
            text = source_code(config, shape, form=form, scheme="notebook")
            (folder / f"notebook-{form}.py").write_text(text, encoding="utf-8")
        weights = {f"model/{key}": value.clone() for key, value in model.state_dict().items()}
        save_file(weights, folder / "checkpoint.safetensors", {"trainer": "{}"})
        torch.save(read_by_file(config, shape, inputs), folder / "inputs.pt")
    (root / "cases.json").write_text(json.dumps(folders))
    done = subprocess.run(
        [sys.executable, "-I", "-c", RUNNER], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {
        index: torch.load(f"{folder}/answers.pt")
        for index, folder in zip(indices, folders, strict=True)
    }


@pytest.mark.core(14)
@pytest.mark.parametrize("index", range(len(CASES)), ids=[case[0] for case in CASES])
def test_the_generated_file_answers_and_attends_as_the_model_does(answers, index):
    _name, model, config, shape, inputs = CASES[index]
    with torch.no_grad():
        said = model.eval()(*inputs)
    for form in [*FORMS, *(f"notebook-{form}" for form in FORMS)]:
        expected, answer = of_family(config, shape, inputs, said, answers[index][form])
        torch.testing.assert_close(answer, expected, atol=1e-5, rtol=1e-4)
    both = answers[index]["weights"], answers[index]["notebook-weights"]
    for ours, theirs in zip(*(one.values() for one in both), strict=True):
        torch.testing.assert_close(theirs, ours, atol=1e-5, rtol=1e-4)
    with capture(model, only={"weights"}) as cache:
        model(*inputs)
    found = answers[index]["weights"]
    known = cache.of("weights")
    assert set(found) == set(known)
    for name, weights in known.items():
        theirs = found[name][:, None] if config.family == "recurrent" else found[name]
        if config.family == "decoder-only" and not shape.one_vocabulary:
            places = joined(inputs, shape)[1]
            for row, first, n in places:  # behind the target the engine has its own filling
                ours = weights[row, :, : first + n]
                torch.testing.assert_close(theirs[row, :, : first + n], ours, atol=1e-5, rtol=1e-4)
        else:
            torch.testing.assert_close(theirs, weights, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_the_generated_file_is_readable_and_needs_torch_alone(form):
    for _name, _model, config, shape, _inputs in CASES:
        _is_readable(source_code(config, shape, form=form), form, config)
        _is_readable(source_code(config, shape, form=form, scheme="notebook"), form, config)


def _is_readable(text, form, config):
    assert max(map(len, text.splitlines())) <= 100
    imported = {
        alias.name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert imported <= {"argparse", "json", "math", "re", "torch"}
    assert ("softmax(-1)" in text) == (form == "written" or config.family == "recurrent")
    assert ("scaled_dot_product_attention" in text) == (
        form == "fused" and config.family != "recurrent"
    )
    if config.family in ("decoder-only", "encoder-only"):
        code = text.partition("NAMES = ")[0]
        assert not re.search(r"\b(src|tgt)(_\w+)?\b", code)


@pytest.mark.parametrize("mistakes", ["", "sliced-heads"])
def test_the_file_begins_with_weights_as_large_as_ours(mistakes):
    drawn = {}
    for gain in (1.0, 1.5):
        settings = {**SMALL, "patch_size": 2, "mistakes": mistakes, "query_key_gain": gain}
        made = {"__name__": "generated"}
        exec(source_code(CaptionerConfig.parse(settings), CAPTION_SHAPE), made)
        torch.manual_seed(5)
        drawn[gain] = made["Model"]().state_dict()
    for name, usual in drawn[1.0].items():
        times = torch.ones(())
        if name.endswith(("in_projection.weight", "in_projection.heads")):
            times = torch.tensor([1.5, 1.5, 1.0]).repeat_interleave(len(usual) // 3)
            times = times.view(-1, *[1] * (usual.ndim - 1))
        torch.testing.assert_close(drawn[1.5][name], times * usual)
    settings = {**SMALL, "d_model": 24, "patch_size": 2, "mistakes": mistakes}
    config = CaptionerConfig.parse(settings | {"query_key_gain": 1.5})
    bounds = {}
    for scheme in ("ours", "notebook"):
        made = {"__name__": "generated"}
        exec(source_code(config, CAPTION_SHAPE, scheme=scheme), made)
        torch.manual_seed(5)
        state = made["Model"]().state_dict()
        ends = ("in_projection.weight", "in_projection.heads")
        ours = [value.chunk(3) for name, value in state.items() if name.endswith(ends)]
        bounds[scheme] = [max(part[i].abs().max() for part in ours) for i in range(3) if ours]
        if scheme == "notebook":
            bounds[scheme] = [
                max(
                    value.abs().max()
                    for name, value in state.items()
                    if f"W_{letter}.w" in name
                    or (f"{letter.lower()}_mappings" in name and name.endswith("weight"))
                )
                for letter in "QKV"
            ]
    torch.testing.assert_close(
        torch.stack(bounds["notebook"]), torch.stack(bounds["ours"]), atol=0, rtol=0.05
    )


NOTEBOOK_PRINT = """\
Encoder(
  (layers): ModuleList(
    (0-2): 3 x EncoderBlock(
      (attn): MultiHeadAttention(
        (W_Q): Linear(in_features=16, out_features=16, bias=True)
        (W_K): Linear(in_features=16, out_features=16, bias=True)
        (W_V): Linear(in_features=16, out_features=16, bias=True)
        (attention): ScaledDotProductAttention()
        (W_O): Linear(in_features=16, out_features=16, bias=True)
      )
      (addnorm1): AddNorm(
        (norm): LayerNorm((16,), eps=1e-05, elementwise_affine=True)
      )
      (ffn): FeedForward(
        (fc1): Linear(in_features=16, out_features=2, bias=True)
        (fc2): Linear(in_features=2, out_features=16, bias=True)
      )
      (addnorm2): AddNorm(
        (norm): LayerNorm((16,), eps=1e-05, elementwise_affine=True)
      )
    )
  )
)"""
"""What a study notebook prints of its smallest encoder."""


def test_the_smallest_encoder_prints_as_the_notebook_does_line_for_line():
    known = ARCHITECTURES["text-encoder"]
    text = printed(known.model, known.shape, "notebook", path=known.own_class)
    older = text.replace("elementwise_affine=True, bias=True", "elementwise_affine=True")
    assert older == NOTEBOOK_PRINT  # newer releases of PyTorch say the bias of a norm, too


def test_the_file_runs_as_it_stands(tmp_path):
    known = ARCHITECTURES["vit-mnist"]
    path = tmp_path / "model.py"
    path.write_text(source_code(known.model, known.shape), encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["answer", "(2,", "10)", "139,018", "parameters"]
