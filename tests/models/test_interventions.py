"""Each mistake is an intervention on a healthy model; its weights stay, and only it is to be seen.

The references are written out here in plain torch, from the weights alone, in the order of
operations of the layers: equal means equal, bit for bit.
"""

import copy
import itertools
import json
import math

import pytest
import torch
from torch import nn

from tests.models.variants import captioner_model, text_batch, text_config, text_model, vit_model
from tests.probe.test_intervene import plain
from tfm_core.choices.config import ConfigError, Experiment, TrainingConfig
from tfm_core.choices.config.codec import from_query, to_query
from tfm_core.choices.mistakes import MISTAKES, made_in, make
from tfm_core.decoding.kv_cache import supports_cache
from tfm_core.models.ends import TokenEmbedding

H, D_HEAD = 3, 4
OF_MODELS = list(made_in("block", "decoder"))
FAMILIES = ["encoder-decoder", "decoder-only"]


def reference(model, src, tgt, mistake):
    """Logits (B, T, vocabulary) of a healthy model's weights in code with a mistake."""
    model, changes = copy.deepcopy(model), {}
    scale = {"no-scale": 1.0, "scaled-by-d-model": 1 / math.sqrt(H * D_HEAD)}.get(mistake)
    everything = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool)
    order = everything if mistake == "no-causal-mask" else everything.tril().mT
    mask = (tgt != 0)[:, None, None, :] & order
    of_head = torch.arange(H * D_HEAD) // D_HEAD
    for path, module in model.named_modules():
        stack, name = path.partition(".")[0], path.rpartition(".")[2]
        if mistake in ("no-causal-mask", "mask-transposed") and stack == "decoder":
            if name == "self_attention":
                changes[f"{path}.mask"] = lambda *_: mask
        elif mistake in ("no-output-projection", "sliced-heads") and name.endswith("_attention"):
            changes[f"{path}.output"] = lambda _, merged: merged
            if mistake == "sliced-heads":  # each head's own slice of the diagonal, zeros elsewhere
                weight = module.in_projection.weight.data
                weight *= of_head.repeat(3)[:, None] == of_head[None]
        elif not name.endswith(("attention_norm", "feed_forward_norm")):
            continue
        elif mistake == "no-residuals":
            changes[f"{path}.skipped"] = lambda *_: None
        elif mistake == "residual-from-normed" or (
            mistake == "feed-forward-residual-from-normed" and name == "feed_forward_norm"
        ):
            changes[f"{path}.skipped"] = lambda _, x, norm=module: norm(x)
        elif mistake == "shared-norm":
            shared = model.get_submodule(path.removesuffix(name) + "self_attention_norm")
            changes[f"{path}.normed"] = lambda _, x, norm=shared: norm(x)
    return plain(model, src, tgt, changes, scale or 1 / math.sqrt(D_HEAD))


def batch_of(family):
    src, tgt = text_batch()
    return (src[:, :0] if family == "decoder-only" else src), tgt


def trained(family, **settings):
    """A healthy model whose norms and biases are no longer those of the first step."""
    model = text_model(family, **settings).eval()
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += torch.randn(parameter.shape, generator=generator)
    return model


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("name", "norm_first"),
    [(None, False), ("no-residuals", False), (None, True), *((name, True) for name in OF_MODELS)],
)
def test_a_mistake_in_a_healthy_model_gives_the_logits_of_its_code(name, norm_first, family):
    model, (src, tgt) = trained(family, norm_first=norm_first), batch_of(family)
    wrong = copy.deepcopy(model)
    make([] if name is None else [name], wrong)
    with torch.no_grad():
        expected, found = reference(model, src, tgt, name), wrong(src, tgt)
        assert torch.equal(found, expected)
        assert torch.equal(model(src, tgt), found) == (name is None)


def test_mistakes_are_asked_for_by_settings_and_keys_and_values_kept():
    for name in OF_MODELS:
        for family in FAMILIES:
            config = text_config(family, mistakes=[name])
            assert config.mistakes == (name,)
            built = text_model(family, mistakes=[name]).eval()
            healthy = text_model(family).eval()
            make([name], healthy)
            assert list(healthy.state_dict()) == list(built.state_dict())
            healthy.load_state_dict(built.state_dict())
            src, tgt = batch_of(family)
            assert torch.equal(healthy(src, tgt), built(src, tgt))
    for model in (text_model("encoder-only"), vit_model()):
        with pytest.raises(ValueError, match="writes no text, so it has no causal mask"):
            make(["no-causal-mask"], model)
    with pytest.raises(ValueError, match="is not made in a model"):
        make(["softmax-before-loss"], text_model("decoder-only"))
    for name in OF_MODELS:
        is_of_mask = name in ("no-causal-mask", "mask-transposed")
        for model in (
            trained("encoder-decoder"),
            trained("decoder-only"),
            captioner_model().eval(),
        ):
            make([name], model)
            assert supports_cache(model) is not is_of_mask


def test_mistakes_are_made_once_in_order_and_refused_where_there_is_no_place():
    assert text_config("encoder-decoder").mistakes == TrainingConfig().mistakes == ()
    for given in ("no-scale,no-residuals", ["no-scale", "no-residuals", "no-scale"]):
        config = text_config("encoder-decoder", mistakes=given)
        assert config.mistakes == ("no-residuals", "no-scale")
        assert from_query(to_query(Experiment(model=config))).model == config
        assert type(config).parse(json.loads(config.model_dump_json())) == config
    for section, values, sentence in [
        (
            "model",
            {"family": "vit", "mistakes": "no-brain"},
            "Unknown name no-brain; choose from no-resid",
        ),
        ("model", {"family": "vit", "mistakes": 3}, "3 is not a list of names"),
        ("model", {"family": "vit", "mistakes": "softmax-before-loss"}, "does not apply here"),
        ("training", {"mistakes": "no-scale"}, "does not apply here"),
        ("model", {"family": "encoder-only", "mistakes": "no-causal-mask"}, "does not apply here"),
    ]:
        with pytest.raises(ConfigError, match=sentence) as error:
            Experiment.parse({section: values})
        (problem,) = error.value.problems
        assert problem.field == f"{section}.mistakes"
    for one, other in itertools.combinations(OF_MODELS, 2):
        if MISTAKES[one].excludes(MISTAKES[other]):
            with pytest.raises(ConfigError, match="exclude each other"):
                text_config("encoder-decoder", mistakes=[one, other])
    for name in OF_MODELS:
        model, (src, tgt) = trained("encoder-decoder"), text_batch()
        make([name], model)
        once = model(src, tgt)
        make([name], model)
        assert torch.equal(model(src, tgt), once)


@pytest.mark.parametrize("first", OF_MODELS)
def test_the_order_of_mistakes_does_not_matter(first):
    for second in OF_MODELS[OF_MODELS.index(first) + 1 :]:
        if not MISTAKES[first].excludes(MISTAKES[second]):
            models = [trained("encoder-decoder") for _ in range(2)]
            make([first, second], models[0])
            make([second, first], models[1])
            batch = text_batch()
            assert torch.equal(models[0](*batch), models[1](*batch)), second


@pytest.mark.parametrize("name", [None, "no-output-projection", "sliced-heads"])
def test_a_matrix_that_is_not_there_draws_no_random_numbers(name):
    model = text_model("encoder-only", mistakes=name or (), n_layers=1)
    block = model.encoder.layers[0]
    torch.manual_seed(0)
    nn.Linear(12, 19)  # the output layer and the words come first
    TokenEmbedding(17, 12)
    if name == "sliced-heads":
        heads = torch.empty(3, H, D_HEAD, D_HEAD)
        expected = torch.nn.init.uniform_(heads, -math.sqrt(3 / D_HEAD), math.sqrt(3 / D_HEAD))
        assert torch.equal(block.self_attention.in_projection.heads, expected)
    else:
        expected = nn.init.xavier_uniform_(nn.Linear(12, 36).weight)
        assert torch.equal(block.self_attention.in_projection.weight, expected)
    if name is None:
        expected = nn.init.xavier_uniform_(nn.Linear(12, 12).weight)
        assert torch.equal(block.self_attention.out_projection.weight, expected)
    assert torch.equal(block.feed_forward.up.weight, nn.Linear(12, 11).weight)
