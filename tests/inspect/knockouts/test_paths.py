"""Paths from a head: the total is the whole patch, and in a linear model the paths sum to it."""

from contextlib import ExitStack

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.inspect.constructed import text_experiment
from tests.inspect.knockouts.test_engine import condition, inputs_of, model_of
from tests.inspect.knockouts.test_patching import _WITH_BLOCKS, _two_inputs
from tfm_core.inspect.knockouts.causes import (
    causes_of_texts,
    other_picture,
    paths_of_pictures,
    paths_of_texts,
    suggested,
    text_of,
)
from tfm_core.inspect.knockouts.head_paths import SENDER, graph, part_of
from tfm_core.inspect.knockouts.patching import Answers, patches_of
from tfm_core.inspect.knockouts.paths import paths_of
from tfm_core.inspect.knockouts.weights import pattern, weighed
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED


@pytest.mark.parametrize("name", [n for n in _WITH_BLOCKS if n != "decoder-only, mistaken"])
def test_all_paths_together_are_the_patch_of_the_head(name: str) -> None:
    model, clean, corrupted, answers = _two_inputs(name)
    before = condition(model)
    patches = patches_of(model, clean, corrupted, answers)
    for module, heads in patches.heads.items():
        for head, patched in enumerate(heads):
            found = paths_of(model, clean, corrupted, answers, module, head)
            assert found.total == pytest.approx(patched, abs=2e-4)
            assert found.clean == pytest.approx(patches.clean, abs=1e-4)
            assert found.corrupted == pytest.approx(patches.corrupted, abs=1e-4)
            assert found.restored(found.corrupted) == 0
    assert condition(model) == before


def _linear() -> tuple[nn.Module, tuple[Tensor, ...], tuple[Tensor, ...], Answers]:
    """Return a model that is linear where attention is held: no norms, no feed-forward."""
    experiment = text_experiment("decoder-only", norm="none", norm_first=True, n_layers=3, d_ff=0)
    model = model_of(experiment)
    clean = tuple(part[:1] for part in inputs_of(experiment))
    changed = clean[0].clone()
    changed[0, 2] = 5 if changed[0, 2] != 5 else 6
    return model, clean, (changed, *clean[1:]), Answers(-1, 5, 7)


def test_paths_sum_to_the_total_and_are_direct_closed_or_through_cross() -> None:
    model, clean, corrupted, answers = _linear()
    attentions = [m for m in model.modules() if isinstance(m, MultiHeadAttention)]
    even = torch.tril(torch.ones(9, 9)) / torch.arange(1, 10)[:, None]
    with ExitStack() as held:
        for attention in attentions:
            held.enter_context(weighed(attention, None, pattern(even)))
        found = paths_of(model, clean, corrupted, answers, "decoder.layers.0.self_attention", 1)
        effect = found.total - found.corrupted
        direct = found.direct - found.corrupted
        through = sum(float((each - found.corrupted).sum()) for each in found.heads.values())
    assert abs(effect) > 1e-3
    assert direct + through == pytest.approx(effect, abs=1e-4)
    assert set(found.heads) == {f"decoder.layers.{n}.self_attention" for n in (1, 2)}
    model, clean, corrupted, answers = _linear()
    found = paths_of(model, clean, corrupted, answers, "decoder.layers.2.self_attention", 0)
    assert not found.heads
    assert not found.feed_forward
    assert found.direct == pytest.approx(found.total, abs=1e-5)
    model, clean, corrupted, answers = _two_inputs("decoder-only")
    mixing = model.get_submodule("decoder.layers.1.self_attention.out_projection")
    with torch.no_grad():
        mixing.weight[:, : 12 // 3] = 0.0
    found = paths_of(model, clean, corrupted, answers, "decoder.layers.0.self_attention", 1)
    later = found.heads["decoder.layers.1.self_attention"] - found.corrupted
    assert later[0] == pytest.approx(0.0, abs=1e-5)
    assert np.abs(later[1:]).max() > 1e-4
    model, clean, corrupted, answers = _two_inputs("encoder-decoder")
    found = paths_of(model, clean, corrupted, answers, "encoder.layers.1.self_attention", 0)
    assert found.direct == pytest.approx(found.corrupted, abs=1e-5)
    assert not any("decoder" in name and "self" in name for name in found.heads)
    assert {name for name in found.heads if "cross" in name}


@pytest.mark.parametrize("name", ["recorded-addition", "recorded-korean", "recorded-digits"])
def test_recorded_models_show_the_paths_of_their_strongest_head(name: str) -> None:
    run = Run(RECORDED / name)
    if name == "recorded-digits":
        head = part_of("encoder.layers.0.self_attention", 1)
        found = paths_of_pictures(run, 0, other_picture(run, 0), head)
    else:
        text = text_of(run, 0)
        changed = suggested(run, text)
        causes = causes_of_texts(run, text, changed)
        head = causes.strongest_head()
        found = paths_of_texts(run, text, changed, head)
        shares, _names = causes.heads()
        assert found.total == pytest.approx(shares.flat[np.abs(shares).argmax()], abs=1e-4)
    parts = found.direct + found.in_sum + found.together
    assert parts == pytest.approx(found.total)
    shown = sum(share for _part, share in found.drawn) + found.others
    assert shown == pytest.approx(found.in_sum)
    dot, nodes = graph(found, head)
    assert SENDER in nodes
    assert {part.code for part, _share in found.drawn} < set(nodes)
    for node in nodes:
        assert f'"{node}" [label=' in dot
