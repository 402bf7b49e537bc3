"""Interventions: each is the arithmetic written out with a function put in, and leaves no trace.

The reference is plain torch, from the weights alone, in the order of operations of the layers:
equal means equal, bit for bit.
"""

import copy
import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F

from tests.models.variants import text_batch, text_model
from tfm_core.layers.recorder import CHANGEABLE
from tfm_core.probe.capture import capture, intervene

BLOCK, ATTENTION = "decoder.layers.1", "decoder.layers.1.self_attention"
POINTS = (
    "positions.placed",
    "decoder.input",
    "decoder.output",
    f"{BLOCK}.residual",
    *(f"{ATTENTION}.{kind}" for kind in ("mask", "weights", "merged", "output")),
    f"{BLOCK}.feed_forward.output",
    *(
        f"{norm}.{kind}"
        for norm in (f"{ATTENTION}_norm", f"{BLOCK}.feed_forward_norm")
        for kind in ("normed", "change", "skipped", "joined")
    ),
)


def plain(model, src, tgt, changes, scale=1 / 2):
    """Logits of a model of texts from its weights, with functions put in at hook points."""
    w = model.state_dict()

    def at(point, value, made_from=None):
        return changes[point](value, made_from) if point in changes else value

    def linear(path, x):
        return F.linear(x, w[f"{path}.weight"], w[f"{path}.bias"])

    def norm(path, x):
        return F.layer_norm(x, x.shape[-1:], w[f"{path}.weight"], w[f"{path}.bias"])

    def attended(path, x, memory, mask):
        mask = at(f"{path}.mask", mask)
        weight, bias = w[f"{path}.in_projection.weight"], w[f"{path}.in_projection.bias"]
        if memory is None:
            q, k, v = F.linear(x, weight, bias).chunk(3, -1)
        else:
            q = F.linear(x, weight[:12], bias[:12])
            k, v = F.linear(memory, weight[12:], bias[12:]).chunk(2, -1)
        q, k, v = (part.view(*part.shape[:2], 3, 4).transpose(1, 2) for part in (q, k, v))
        if f"{path}.weights" in changes:
            scores = (q @ k.mT * scale).masked_fill(~mask, torch.finfo(q.dtype).min)
            weights = scores.softmax(-1).masked_fill(~mask, 0.0)
            heads = at(f"{path}.weights", weights, mask) @ v
        else:
            heads = F.scaled_dot_product_attention(q, k, v, mask, scale=scale)
        merged = at(f"{path}.merged", heads.transpose(1, 2).reshape(x.shape))
        return at(f"{path}.output", linear(f"{path}.out_projection", merged), merged)

    def sublayer(path, x, mask, memory, memory_mask):
        if path.endswith("self_attention"):
            return attended(path, x, None, mask)
        if path.endswith("cross_attention"):
            return attended(path, x, memory, memory_mask)
        return at(f"{path}.output", linear(f"{path}.down", F.gelu(linear(f"{path}.up", x))), x)

    def stacked(stack, x, *others):
        x = at(f"{stack}.input", x)
        for layer, block in enumerate(model.get_submodule(stack).layers):
            came, is_first = x, block.norm_first
            names = ["self_attention", "cross_attention", "feed_forward"]
            for name in names if block.cross_attention is not None else names[::2]:
                path = f"{stack}.layers.{layer}.{name}"
                read = at(f"{path}_norm.normed", norm(f"{path}_norm", x), x) if is_first else x
                change = at(f"{path}_norm.change", sublayer(path, read, *others), read)
                skipped = at(f"{path}_norm.skipped", x, x)
                total = change if skipped is None else skipped + change
                joined = total if is_first else norm(f"{path}_norm", total)
                x = at(f"{path}_norm.joined", joined, total)
            x = at(f"{stack}.layers.{layer}.residual", x, came)
        has_norm = model.get_submodule(stack).final_norm is not None
        return at(f"{stack}.output", norm(f"{stack}.final_norm", x) if has_norm else x, x)

    def embedded(side, positions, ids):
        x = w[f"{side}_embedding.table.weight"][ids] * math.sqrt(12)
        table = model.get_submodule(positions).table.values
        return at(f"{positions}.placed", x + table[: ids.size(1)], x)

    keep, length = (tgt != 0)[:, None, None, :], tgt.size(1)
    mask = keep & torch.ones(length, length, dtype=torch.bool).tril()
    if hasattr(model, "encoder"):
        is_word = (src != 0)[:, None, None, :]
        memory = stacked("encoder", embedded("src", "src_positions", src), is_word, None, None)
        x = embedded("tgt", "tgt_positions", tgt)
        return linear("output", stacked("decoder", x, mask, memory, is_word))
    return linear("output", stacked("decoder", embedded("tgt", "positions", tgt), mask, None, None))


def halved(value, _made_from):
    if value.dtype is torch.bool:  # a mask
        return value & torch.eye(value.size(-1), dtype=torch.bool)
    return value / 2


def writer(norm_first):
    """A decoder-only model whose norms and biases are no longer those of the first step."""
    model = text_model("decoder-only", n_layers=3, norm_first=norm_first).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(7)))
    return model


@pytest.fixture(params=[True, False], ids=["pre-norm", "post-norm"])
def model(request):
    return writer(request.param)


@pytest.fixture
def ids():
    return text_batch()[1]


@torch.no_grad()
def test_an_intervention_is_the_arithmetic_with_a_function_put_in(model, ids):
    usual = model(ids[:, :0], ids)
    assert torch.equal(usual, plain(model, None, ids, {}))
    n_reached = 0
    for point in POINTS:
        changes = {point: halved}
        with intervene(model, changes):
            found = model(ids[:, :0], ids)
        assert torch.equal(found, plain(model, None, ids, changes)), point
        n_reached += not torch.allclose(found, usual)
    is_first = model.decoder.layers[0].norm_first
    assert n_reached == len(POINTS) - (0 if is_first else 2)  # a post-norm block norms sums alone
    together = {
        "positions.placed": lambda _placed, came: came,
        f"{ATTENTION}_norm.skipped": lambda _skipped, _x: None,
        f"{BLOCK}.residual": lambda _out, came: came + 1,
        "decoder.layers.0.self_attention.weights": lambda weights, mask: mask / mask.sum(-1, True),
    }
    with intervene(model, together):
        assert torch.equal(model(ids[:, :0], ids), plain(model, None, ids, together))


def test_every_kind_can_be_changed_in_a_stack_and_no_other_name():
    points = [*POINTS, f"{ATTENTION}.relative"]
    assert {point.rpartition(".")[2] for point in points} == CHANGEABLE
    model = text_model("decoder-only", position="rotary", n_layers=2).eval()
    bare = text_model("decoder-only", position="none", n_layers=2).eval()
    bare.load_state_dict(model.state_dict())
    src, ids = text_batch()[0][:, :0], text_batch()[1]
    inside = [f"decoder.layers.{n}.self_attention.relative" for n in range(2)]
    with intervene(model, dict.fromkeys(inside, lambda _turned, straight: straight)):
        assert torch.equal(model(src, ids), bare(src, ids))
    for point in (f"{ATTENTION}.scores", "decoder.logits", "rows"):
        with pytest.raises(ValueError, match="cannot be changed"):
            intervene(model, {point: halved}).__enter__()
    with pytest.raises(AttributeError, match="has no attribute"):
        intervene(model, {"decoder.layers.9.residual": halved}).__enter__()


def condition(model):
    """What a model is made of: its modules, their attributes and hooks, by identity."""
    return [
        (name, id(module), key, id(value), [(k, id(v)) for k, v in value.items()])
        if isinstance(value, dict)
        else (name, id(module), key, id(value))
        for name, module in model.named_modules()
        for key, value in vars(module).items()
    ]


@torch.no_grad()
def test_the_model_is_left_as_it_was_also_after_errors_and_other_threads_never_see_it(model, ids):
    before, weights = condition(model), copy.deepcopy(model.state_dict())
    usual, state = model(ids[:, :0], ids), torch.get_rng_state()
    model.decoder.layers[0].train()
    changes = {**dict.fromkeys(POINTS, halved), "decoder.output": lambda *_: 1 / 0}
    with pytest.raises(ZeroDivisionError), intervene(model, changes), capture(model) as cache:
        model(ids[:, :0], ids)
    n_kept = len(cache)
    assert [block.training for block in model.decoder.layers] == [True, False, False]
    model.eval()
    with intervene(model, {"decoder.output": halved}), ThreadPoolExecutor() as pool:
        assert not torch.equal(model(ids[:, :0], ids), usual)
        assert torch.equal(pool.submit(model, ids[:, :0], ids).result(), usual)
    assert torch.equal(model(ids[:, :0], ids), usual)
    assert len(cache) == n_kept
    assert condition(model) == before
    assert torch.equal(torch.get_rng_state(), state)
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, weights[name])


@torch.no_grad()
def test_interventions_add_up_outermost_first_and_captures_keep_what_goes_on(model, ids):
    def plus(value, _made_from):
        return value + 1

    point = f"{ATTENTION}.merged"
    with capture(model, only={"merged"}) as outer:
        model(ids[:, :0], ids)
        usual = outer[point]
        with intervene(model, {point: plus}):
            with intervene(model, {point: halved}), capture(model, only={"merged"}) as cache:
                model(ids[:, :0], ids)
            assert torch.equal(cache[point], (usual + 1) / 2)
            model(ids[:, :0], ids)
            assert torch.equal(outer[point], usual + 1)
        model(ids[:, :0], ids)
    assert torch.equal(outer[point], usual)
