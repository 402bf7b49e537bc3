"""The generated file, executed in a process that has torch alone, says what the model says."""

import ast
import json
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from tests.models.variants import (
    CAPTION_SHAPE,
    CAPTIONER_VARIANTS,
    SMALL,
    SRC_WORDS,
    TEXT_VARIANTS,
    TGT_WORDS,
    VIT_VARIANTS,
    caption_batch,
    captioner_model,
    text_batch,
    text_config,
    text_model,
    vit_model,
)
from tfm_core.config import MODEL_CONFIGS, CaptionerConfig, ViTConfig
from tfm_core.config.shape import ImageShape, TextShape
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.inspect.source.file import source_code
from tfm_core.models.build import build_model

IMAGES = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(2))
RUNNER = """
import importlib.util, json, sys, torch
for folder in json.load(open("cases.json")):
    spec = importlib.util.spec_from_file_location("generated", f"{folder}/model.py")
    generated = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generated)
    model = generated.Model().eval()
    model.load_state_dict(generated.load(f"{folder}/checkpoint.safetensors"))
    with torch.no_grad():
        torch.save(model(*torch.load(f"{folder}/inputs.pt")), f"{folder}/answer.pt")
assert not [name for name in sys.modules if name.startswith(("tfm_core", "safetensors"))]
"""


def _cases():
    """(name, model, config, shape, inputs): every registered variant, and published ends."""
    for family, settings in TEXT_VARIANTS:
        config = text_config(family, **settings)
        same = family == "encoder-only" and settings.get("tie_embeddings")
        shape = TextShape(TGT_WORDS if same else SRC_WORDS, TGT_WORDS)
        yield f"{family} {settings}", text_model(family, **settings), config, shape, text_batch()
    for head, settings in (("mean", {}), ("cls", {"position": "learned", "bias": False})):
        config = MODEL_CONFIGS["encoder-only"].parse({**SMALL, **settings})
        shape = TextShape(SRC_WORDS, 7, head=head, n_labels=3)
        yield f"label {head}", build_model(config, shape), config, shape, text_batch()
    for settings in VIT_VARIANTS:
        config = ViTConfig.parse({**SMALL, "patch_size": 2, **settings})
        yield f"vit {settings}", vit_model(**settings), config, ImageShape(6, 3, 5), (IMAGES,)
    for settings in CAPTIONER_VARIANTS:
        config = CaptionerConfig.parse({**SMALL, "patch_size": 2, **settings})
        model = captioner_model(**settings)
        yield f"captioner {settings}", model, config, CAPTION_SHAPE, caption_batch()
    for name in ("transformer-base", "bert-base", "gpt2-small"):
        config = ARCHITECTURES[name].model.replace(**SMALL)
        known = ARCHITECTURES[name].shape
        shape = replace(known, src_vocabulary=TGT_WORDS, tgt_vocabulary=TGT_WORDS)
        src, tgt_in = text_batch()
        inputs = (src if shape.has_source else src[:, :0], tgt_in)
        yield name, build_model(config, shape), config, shape, inputs
    for settings in ({}, {"position": "learned", "tie_embeddings": True}, {"window": 2}):
        config = MODEL_CONFIGS["decoder-only"].parse({**SMALL, **settings})
        shape = TextShape(TGT_WORDS, TGT_WORDS, one_vocabulary=True, has_source=False)
        src, tgt_in = text_batch()
        inputs = (src[:, :0], tgt_in)
        yield f"language model {settings}", build_model(config, shape), config, shape, inputs


CASES = list(_cases())


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What each generated file answers, all executed in one clean process."""
    root = tmp_path_factory.mktemp("generated")
    folders = []
    for index, (_name, model, config, shape, inputs) in enumerate(CASES):
        folder = root / str(index)
        folder.mkdir()
        folders.append(str(folder))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        (folder / "model.py").write_text(source_code(config, shape), encoding="utf-8")
        weights = {f"model/{key}": value.clone() for key, value in model.state_dict().items()}
        save_file(weights, folder / "checkpoint.safetensors", {"trainer": "{}"})
        torch.save(inputs, folder / "inputs.pt")
    (root / "cases.json").write_text(json.dumps(folders))
    done = subprocess.run(
        [sys.executable, "-c", RUNNER], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [torch.load(f"{folder}/answer.pt") for folder in folders]


@pytest.mark.parametrize("index", range(len(CASES)), ids=[case[0] for case in CASES])
def test_the_generated_file_says_what_the_model_says(answers, index):
    _name, model, _config, _shape, inputs = CASES[index]
    with torch.no_grad():
        expected = model.eval()(*inputs)
    torch.testing.assert_close(answers[index], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("index", range(len(CASES)), ids=[case[0] for case in CASES])
def test_the_generated_file_is_readable(index):
    _name, _model, config, shape, _inputs = CASES[index]
    text = source_code(config, shape)
    assert max(map(len, text.splitlines())) <= 100
    imported = {
        alias.name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert imported == {"json", "math", "sys", "torch"}


def test_the_file_runs_as_it_stands(tmp_path):
    known = ARCHITECTURES["vit-mnist"]
    path = tmp_path / "model.py"
    path.write_text(source_code(known.model, known.shape), encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["answer", "(2,", "10)", "139,018", "parameters"]
