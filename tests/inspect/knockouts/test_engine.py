"""Parts of a model switched off: what is lost and what is not, and all is as before afterwards."""

import copy
import math

import pytest
import torch
from torch import Tensor, nn

from tests.inspect.constructed import text_experiment, vit_experiment
from tests.models.variants import text_batch
from tests.probe.test_intervene import condition, plain, writer
from tfm_core.choices.config import Experiment
from tfm_core.choices.variants.positions import POSITIONS_OF_WORDS
from tfm_core.data.caption_words import CANVAS
from tfm_core.data.tasks import data_shape
from tfm_core.inspect.knockouts.engine import knocked_out, means_of
from tfm_core.inspect.knockouts.parts import Part, heads_of, name_of, parts_of
from tfm_core.layers.recorder import Change
from tfm_core.models.build import build_model


def _captioner(**settings: object) -> Experiment:
    model = {"family": "captioner", "d_model": 12, "n_heads": 3, **settings}
    return Experiment.parse({"model": model, "task": {"kind": "caption", "name": "captions"}})


EXPERIMENTS = {
    "encoder-decoder": text_experiment(),
    "encoder-decoder, pre-norm": text_experiment(norm_first=True),
    "encoder-decoder, one norm": text_experiment(mistakes="shared-norm"),
    "encoder-only": text_experiment("encoder-only", window=2),
    "decoder-only": text_experiment("decoder-only"),
    "decoder-only, mistaken": text_experiment(
        "decoder-only", mistakes="mask-transposed,residual-from-normed"
    ),
    "vit": vit_experiment(),
    "vit with CLS": vit_experiment("cls"),
    "captioner": _captioner(),
    "captioner, mistaken": _captioner(mistakes="no-causal-mask", text_position="none"),
    "recurrent": text_experiment("recurrent", cell="lstm"),
}


def model_of(experiment: Experiment) -> nn.Module:
    torch.manual_seed(7)
    model = build_model(experiment.model, data_shape(experiment)).eval()
    with torch.no_grad():  # a bias that is zero would hide what is lost
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return model


def inputs_of(experiment: Experiment) -> tuple[Tensor, ...]:
    draw = torch.Generator().manual_seed(5)
    src = torch.randint(5, 9, (2, 5), generator=draw)
    src[1, 3:] = 0  # padding
    tgt_in = torch.randint(5, 9, (2, 4), generator=draw)
    images = torch.randn((2, 1, 28, 28), generator=draw)
    if experiment.model.family == "vit":
        return (images,)
    if experiment.model.family == "captioner":
        return torch.randn((2, 1, CANVAS, CANVAS), generator=draw), tgt_in
    return src, tgt_in


def answers(model: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    with torch.inference_mode():
        out: Tensor = model(*inputs)
    return out


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_part_makes_a_difference_and_the_model_is_as_before_afterwards(name: str) -> None:
    experiment = EXPERIMENTS[name]
    model, inputs = model_of(experiment), inputs_of(experiment)
    before, whole = condition(model), answers(model, inputs)
    weights = copy.deepcopy(model.state_dict())
    parts = parts_of(experiment)
    assert parts
    means = means_of(model, parts, [inputs])
    assert condition(model) == before
    for part in parts:
        with knocked_out(model, [part]):
            without = answers(model, inputs)
        assert not torch.allclose(without, whole), name_of(part)
        assert condition(model) == before
        if part in means:
            with knocked_out(model, [part], means):
                assert not torch.equal(answers(model, inputs), without), name_of(part)
    with pytest.raises(ValueError, match=r"math|nonnegative"), knocked_out(model, parts, means):
        math.sqrt(-answers(model, inputs).abs().sum())
    assert condition(model) == before
    assert torch.equal(answers(model, inputs), whole)
    for key, weight in model.state_dict().items():
        assert torch.equal(weight, weights[key])


def test_every_part_has_a_code_and_a_name_of_its_own_and_none_is_offered_that_is_not_there() -> (
    None
):
    for name in EXPERIMENTS:
        parts = parts_of(EXPERIMENTS[name])
        assert len({part.code for part in parts}) == len(parts)
        assert len({str(name_of(part)) for part in parts}) == len(parts)
        assert all("{" not in name_of(part) for part in parts)
    kinds = {part.kind for part in parts_of(text_experiment("encoder-only", position="none"))}
    assert "positions" not in kinds
    assert not heads_of(EXPERIMENTS["recurrent"])
    assert "mask" not in {part.kind for part in parts_of(EXPERIMENTS["vit"])}
    bare = text_experiment("decoder-only", mistakes="no-causal-mask,no-residuals", norm="none")
    kinds = {part.kind for part in parts_of(bare)}
    assert kinds == {"head", "sublayer", "layer", "positions"}


def test_means_are_over_tokens_alone_and_a_head_that_says_one_thing_is_not_missed() -> None:
    experiment = EXPERIMENTS["decoder-only"]
    model, inputs = model_of(experiment), inputs_of(experiment)
    head = Part("head", "decoder", 0, "self", 2)
    projection = model.get_submodule("decoder.layers.0.self_attention.in_projection")
    with torch.no_grad():
        projection.weight[2 * 12 + 2 * 4 :] = 0.0  # its values: what is left is their bias
    whole = answers(model, inputs)
    with knocked_out(model, [head], means_of(model, [head], [inputs])):
        torch.testing.assert_close(answers(model, inputs), whole)
    with knocked_out(model, [head]):
        assert not torch.allclose(answers(model, inputs), whole)
    experiment = EXPERIMENTS["encoder-decoder"]
    model, (src, tgt_in) = model_of(experiment), inputs_of(experiment)
    part = Part("sublayer", "encoder", 1, "ff")
    both = means_of(model, [part], [(src, tgt_in)])[part]
    alone = means_of(model, [part], [(src[:1], tgt_in[:1]), (src[1:, :3], tgt_in[1:])])[part]
    torch.testing.assert_close(both, alone)


@torch.no_grad()
@pytest.mark.parametrize("mean", [None, torch.randn(12)], ids=["zero", "mean"])
@pytest.mark.parametrize("norm_first", [True, False], ids=["pre-norm", "post-norm"])
def test_a_part_that_is_off_is_its_arithmetic_without_it(
    norm_first: bool, mean: Tensor | None
) -> None:
    model, ids = writer(norm_first), text_batch()[1]
    constant = torch.zeros(12) if mean is None else mean
    block, attention = "decoder.layers.1", "decoder.layers.1.self_attention"
    is_word = (ids != 0)[:, None, None, :]

    def without_head(merged: Tensor, _: object) -> Tensor:
        head = constant[:4].expand_as(merged[..., 4:8])
        return torch.cat([merged[..., :4], head, merged[..., 8:]], -1)

    off: dict[str, dict[str, Change]] = {
        "2.self.2": {f"{attention}.merged": without_head},
        "2.self": {f"{attention}.output": lambda out, _: constant.expand_as(out)},
        "2.ff": {f"{block}.feed_forward.output": lambda out, _: constant.expand_as(out)},
        "2": {f"{block}.residual": lambda _, x: x + constant},
        "positions": {"positions.placed": lambda _, x: x + constant},
        "2.self.residual": {f"{attention}_norm.skipped": lambda *_: None},
        "2.self.norm": {f"{attention}_norm.{'normed' if norm_first else 'joined'}": lambda _, x: x},
        "self.mask": {
            f"decoder.layers.{n}.self_attention.mask": lambda *_: is_word for n in range(3)
        },
    }
    experiment = text_experiment("decoder-only", n_layers=3, norm_first=norm_first)
    parts = {part.code: part for part in parts_of(experiment)}
    for code, changes in off.items():
        part = parts[f"decoder.{code}"]
        means = {part: constant[:4] if part.head else constant} if mean is not None else None
        with knocked_out(model, [part], means):
            found = model(ids[:, :0], ids)
        assert torch.equal(found, plain(model, None, ids, changes)), code
    even = {f"{attention}.weights": lambda weights, mask: even_over(mask).expand_as(weights)}
    with knocked_out(model, [parts["decoder.2.self"]], is_even=True):
        found = model(ids[:, :0], ids)
    torch.testing.assert_close(found, plain(model, None, ids, even))


def even_over(mask: Tensor) -> Tensor:
    return mask / mask.sum(-1, keepdim=True).clamp(min=1)


@pytest.mark.parametrize("position", sorted(set(POSITIONS_OF_WORDS) - {"none"}))
def test_without_positions_an_encoder_reads_a_set(position: str) -> None:
    experiment = text_experiment("encoder-only", position=position)
    model = model_of(experiment)
    src = torch.tensor([[5, 6, 7, 8, 9]])
    order = torch.tensor([3, 0, 4, 1, 2])
    length = torch.zeros(1, 5, dtype=torch.int64)
    usual = answers(model, (src, length))
    assert not torch.allclose(answers(model, (src[:, order], length)), usual[:, order], atol=1e-4)
    with knocked_out(model, [Part("positions", "encoder")]):
        as_set = answers(model, (src, length))
        moved = answers(model, (src[:, order], length))
    torch.testing.assert_close(moved, as_set[:, order], atol=1e-4, rtol=1e-4)
