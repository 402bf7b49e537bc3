"""A look in a file and as a run: the same maps, masks and names; forged files are refused."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plotly.io
import pytest
import torch
from torch import nn

from tests.looking.loops import Writer, named, probe
from tests.looking.test_written_elsewhere import Recurrent
from tests.static.repository import ROOT
from tfm_core import look
from tfm_core.__main__ import main
from tfm_core.choices.config import ForeignModelConfig, ForeignTaskConfig
from tfm_core.looking import opening
from tfm_core.looking.file import FORMAT, MARK
from tfm_core.looking.foreign import stacks_of
from tfm_core.looking.opening import left_out, open_look
from tfm_core.looking.result import Look
from tfm_core.looking.unseen import sentence_of
from tfm_core.probe.labels import modules_by_kind
from tfm_core.runs.notebook import OpenedRun
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.sentences import N_, StudentError

N, SRC, TGT, WIDTH, HEADS = 3, 7, 5, 12, 2
SOURCE, TARGET = tuple("abcdefg"), tuple("vwxyz")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(name="pair")
def _pair() -> Look:
    model = nn.Transformer(WIDTH, HEADS, 2, 3, 16, batch_first=True)
    padding = torch.zeros(N, SRC, dtype=torch.bool)
    padding[1, 4:] = True
    return look(
        model,
        torch.randn(N, SRC, WIDTH),
        torch.randn(N, TGT, WIDTH),
        tgt_mask=model.generate_square_subsequent_mask(TGT),
        src_key_padding_mask=padding,
        tokens=(SOURCE, TARGET),
    )


def encoder(length: int = SRC, **given: Any) -> Look:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return look(model, torch.randn(N, length, WIDTH), **given)


def test_a_file_holds_what_was_seen(pair: Look, tmp_path: Path) -> None:
    again = look.load(pair.save(tmp_path / "pair.safetensors"))
    assert list(again.maps) == list(pair.maps)
    for name, one in pair.maps.items():
        other = again.maps[name]
        assert torch.equal(other.weights, one.weights)
        assert (other.allowed is None) == (one.allowed is None)
        assert one.allowed is None or torch.equal(other.allowed, one.allowed)
        assert (other.kind, other.is_causal, other.length) == (one.kind, one.is_causal, one.length)
        assert again.names(other) == pair.names(one)
    assert repr(again) == repr(pair)
    with pytest.raises(OSError, match="nowhere/pair cannot be written"):
        pair.save(tmp_path / "nowhere" / "pair")


def test_a_look_too_large_for_a_run_is_refused_before_its_weights_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = encoder().save(tmp_path / "look")
    monkeypatch.setattr(opening, "_MAX_NUMBERS", 100)
    monkeypatch.setattr(torch, "isfinite", lambda *_given: pytest.fail("its weights were read"))
    assert main(["open", str(path)]) == 2
    assert "take 392 B in a run; 200 B are allowed" in capsys.readouterr().err


def test_names_in_bytes_are_text_in_a_look_its_file_and_its_run(tmp_path: Path) -> None:
    names = ["the", "Ġì", "ķ", "Ī", "Ġc", "a", "t"]
    wanted = ("the", " 안 1/3", "안 2/3", "안 3/3", " c", "a", "t")
    seen = encoder(tokens=names)
    assert look.load(seen.save(tmp_path / "look")).tokens == seen.tokens == (wanted,)
    (item, *_more) = open_look(seen, RunStore(tmp_path, recorded=None)).probe().items
    assert (tuple(item["src"]), item["src_text"]) == (wanted, "the 안 cat")


def test_a_crop_keeps_its_positions(tmp_path: Path) -> None:
    part = encoder(crop=slice(2, 5), tokens=SOURCE)
    again = look.load(part.save(tmp_path / "part.safetensors"))
    (first, *_rest) = again.maps.values()
    assert again.names(first) == (SOURCE[2:5], SOURCE[2:5])
    assert first.weights.shape[-2:] == (3, 3)
    assert first.length == (SRC, SRC)


def test_a_run_shows_the_maps_the_masks_and_the_names(pair: Look, tmp_path: Path) -> None:
    run = open_look(pair, RunStore(tmp_path, recorded=None))
    opened = OpenedRun(run)
    assert opened.attention_kinds == {"encoder": 2, "decoder": 3, "cross": 3}
    for kind, start, layers in (
        ("encoder", "encoder.layers.{}.self_attn", 2),
        ("decoder", "decoder.layers.{}.self_attn", 3),
        ("cross", "decoder.layers.{}.multihead_attn", 3),
    ):
        for layer in range(layers):
            one = pair.maps[start.format(layer)]
            shown = opened.attention(kind=kind, layer=layer, example=1)
            assert np.allclose(shown.weights, one.weights[1], atol=1e-3)  # half precision
            assert (shown.query, shown.key) == pair.names(one)
            allowed = torch.ones(1, 1, 1, 1) if one.allowed is None else one.allowed
            wanted = allowed.expand(one.weights.shape)[1, 0].bool()
            assert np.array_equal(shown.may_attend, wanted.numpy())
    assert not left_out(pair)
    assert run.status.state == "opened"


def test_a_look_that_an_older_app_stored_with_an_invented_model_opens_as_it_is_stored_now(
    pair: Look, tmp_path: Path
) -> None:
    writer = look(Writer(), probe(N), tokens=named(probe(N))[0])
    for seen in (pair, encoder(), writer):
        run = open_look(seen, RunStore(tmp_path, recorded=None))
        now, wanted = run.experiment, OpenedRun(run)
        model, task = now.model_as(ForeignModelConfig), now.task_as(ForeignTaskConfig)
        block = {"n_heads": model.n_heads, "d_model": 8 * model.n_heads}
        if model.cross:
            layers = {"n_encoder_layers": len(model.both), "n_decoder_layers": len(model.cross)}
            block |= {"family": "encoder-decoder", **layers}
        else:
            family = "decoder-only" if model.past else "encoder-only"
            block |= {"family": family, "n_layers": len(model.modules)}
        old = {
            **{"called": model.class_name, "architecture": "", "left_out": "", "tokenizer": ""},
            **{"n_words": 5, "pad_id": -1, "bos_id": -1, "eos_id": -1, "unk_id": -1, "eos": ""},
            **task.model_dump(exclude={"kind"}),
            **{"kind": "look", "reads": "pair", "n_parameters": model.n_parameters},
            "modules": "\n".join(model.modules.values()),
        }
        values = {"model": block, "task": old, "training": {"steps": 1000}, "seed": 0}
        (run.folder / "experiment.json").write_text(json.dumps(values), encoding="utf-8")
        opened = OpenedRun(Run(run.folder))
        assert opened.experiment == now
        for kind in wanted.attention_kinds:
            shown = opened.attention(kind=kind, layer=0, example=1)
            assert shown.query == wanted.attention(kind=kind, layer=0, example=1).query


@pytest.mark.parametrize("crop", [None, 3])
def test_other_layouts_open_too(tmp_path: Path, crop: int | None) -> None:
    store = RunStore(tmp_path, recorded=None)
    assert OpenedRun(open_look(encoder(crop=crop), store)).attention_kinds == {"reading": 2}
    words = look(Recurrent(), torch.randn(3, SRC, WIDTH), torch.randn(3, TGT, WIDTH), crop=crop)
    run = open_look(words, store)
    kinds = modules_by_kind(run.experiment)
    recorded = set(run.snapshot(0).attention)
    assert [kind for kind, names in kinds.items() if recorded >= set(names)] == ["cross"]


def test_what_was_not_seen_is_the_same_sentence_after_a_file(tmp_path: Path) -> None:
    for sentence in (
        N_(
            "{module} computes attention in {operation}, which shows no weights.",
            module=N_("The model"),
            operation="flash",
        ),
        N_(
            "{module} changes its weights before they multiply values; they are not shown.",
            module="a.b",
        ),
        N_("No attention was found: no softmax multiplied values."),
    ):
        again = sentence_of(str(sentence))
        assert (again.template, again.values) == (sentence.template, sentence.values)
    seen = replace(encoder(), unseen=(sentence,))
    (again,) = look.load(seen.save(tmp_path / "one.safetensors")).unseen
    assert again.template == sentence.template
    task = open_look(seen, RunStore(tmp_path, recorded=None)).experiment.task_as(ForeignTaskConfig)
    assert task.unseen == sentence


def test_maps_of_other_shapes_are_named_as_left_out(tmp_path: Path) -> None:
    class Stages(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList(
                nn.MultiheadAttention(WIDTH, HEADS, batch_first=True) for _one in range(3)
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for part in self.parts[:2]:
                x = part(x, x, x)[0]
            x = x[:, ::2]
            return self.parts[2](x, x, x)[0]

    seen = look(Stages(), torch.randn(N, SRC, WIDTH))
    assert len(stacks_of(seen).all) == 2
    assert left_out(seen) == ("parts.2",)
    experiment = open_look(seen, RunStore(tmp_path, recorded=None)).experiment
    assert experiment.model_as(ForeignModelConfig).both == ("parts.0", "parts.1")
    assert experiment.task_as(ForeignTaskConfig).n_left_out == 1


def test_maps_over_keys_of_a_cache_are_refused_in_a_sentence(tmp_path: Path) -> None:
    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            return (q[..., 3:, :] @ k.mT).softmax(-1) @ v

    seen = look(Cached(), torch.randn(N, SRC, WIDTH))
    (one,) = seen.maps.values()
    assert (one.kind, one.length) == ("self", (SRC - 3, SRC))
    with pytest.raises(StudentError, match="other positions"):
        open_look(seen, RunStore(tmp_path, recorded=None))


def test_the_command_line_opens_a_file(
    pair: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "runs"))
    path = pair.save(tmp_path / "pair.safetensors")
    assert main(["open", str(path), "--name", "mine"]) == 0
    run = RunStore().get(capsys.readouterr().out.strip())
    assert run.meta.name == "mine"
    assert not run.problem
    path.write_bytes(b"no tensors")
    assert main(["open", str(path)]) != 0
    assert "is not a look" in capsys.readouterr().err


def _changed(path: Path, change: Any) -> None:
    """Write the header of a file anew. change(facts, tensors) edits both in place."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    facts = json.loads(header["__metadata__"][MARK])
    change(facts, header)
    header["__metadata__"][MARK] = json.dumps(facts)
    words = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(words)) + words + content[8 + length :])


@pytest.mark.parametrize(
    "change",
    [
        lambda facts, _tensors: facts.update(format=FORMAT + 1),
        lambda facts, _tensors: facts.update(model="two\nlines"),
        lambda facts, _tensors: facts.update(n_parameters=-1),
        lambda facts, _tensors: facts.update(tokens="words"),
        lambda facts, _tensors: facts["maps"][0].update(kind="other"),
        lambda facts, _tensors: facts["maps"][0].update(queries=[0, 10**6]),
        lambda facts, _tensors: facts["maps"][0].update(length=[1, 1]),
        lambda facts, _tensors: facts["maps"][0].update(name=facts["maps"][1]["name"]),
        lambda facts, _tensors: facts["maps"].append(facts["maps"][0]),
        lambda facts, _tensors: facts.pop("maps"),
        lambda _facts, tensors: tensors["0.weights"].update(shape=[N, HEADS, SRC * SRC, 1]),
        lambda _facts, tensors: tensors["0.weights"].update(dtype="I32"),
        lambda _facts, tensors: tensors["0.weights"].update(dtype="F64"),
        lambda _facts, tensors: tensors.pop("0.query"),
        lambda _facts, tensors: tensors["0.key"].update(dtype="I32"),
        lambda _facts, tensors: tensors["0.value"].update(shape=[N, HEADS, 6, SRC]),
    ],
)
def test_forged_files_are_refused_in_a_sentence(tmp_path: Path, change: Any) -> None:
    path = encoder().save(tmp_path / "one.safetensors")
    _changed(path, change)
    with pytest.raises(StudentError, match=r"is not a look"):
        look.load(path)


def test_files_of_the_first_format_have_no_vectors(tmp_path: Path) -> None:
    seen = encoder()
    for one in seen.maps.values():
        object.__setattr__(one, "vectors", None)
    path = seen.save(tmp_path / "one.safetensors")
    _changed(path, lambda facts, _tensors: facts.update(format=1))
    again = look.load(path)
    assert [one.vectors for one in again.maps.values()] == [None, None]
    assert repr(again) == repr(seen)


def test_weights_that_are_no_numbers_and_other_files_are_refused(tmp_path: Path) -> None:
    seen = encoder()
    next(iter(seen.maps.values())).weights[0, 0, 0, 0] = torch.nan
    with pytest.raises(StudentError, match="not numbers"):
        look.load(seen.save(tmp_path / "nan.safetensors"))
    with pytest.raises(StudentError, match="There is no file"):
        look.load(tmp_path / "missing")
    with pytest.raises(StudentError, match="is not a look"):
        look.load(tmp_path)


def test_a_notebook_shows_every_head_and_needs_no_network(
    pair: Look, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    html = pair._repr_html_()
    assert html.count("<img") == 8 * HEADS
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")
    figure = pair.figure("decoder.layers.1.multihead_attn", head=1, example=1)
    wanted = pair.maps["decoder.layers.1.multihead_attn"].weights[1, 1]
    shown = np.asarray(figure.data[0].z, np.float32)
    assert np.allclose(shown[~np.isnan(shown)], wanted.flatten().numpy())
    assert (
        figure.layout.title.text == "decoder.layers.1.multihead_attn, head 2"
    )  # as the app counts
    assert "head 1'" in pair._repr_html_()
    assert "head 0" not in pair._repr_html_()
    setting = re.search(r'renderers\.default = "(.+)"', (ROOT / "docs/look.md").read_text())
    assert setting
    monkeypatch.setattr(plotly.io.renderers, "default", setting[1])
    bundle = figure._repr_mimebundle_()  # nbconvert takes its HTML, JupyterLab the other
    assert set(bundle) == {"application/vnd.plotly.v1+json", "text/html"}
    assert "cdn.plot.ly" not in bundle["text/html"]
    assert "plotly.js v" in capsys.readouterr().out  # once in the notebook
    with pytest.raises(StudentError, match="Head 2 does not exist"):
        pair.figure(head=HEADS)
    with pytest.raises(StudentError, match="no map"):
        pair.figure("elsewhere")
