"""The anatomy of a random model against the model itself, built on the meta device."""

import pytest
import torch
from hypothesis import given
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from tests.anatomy.configurations import SRC, TGT, config_of, models
from tfm_core.anatomy import Attention, anatomy, attentions, stacks
from tfm_core.anatomy.anatomy import FAMILIES
from tfm_core.anatomy.blocks import N_BUCKETS
from tfm_core.choices.config import MODEL_CONFIGS
from tfm_core.choices.config.shape import CaptionShape, ImageShape, TextShape
from tfm_core.choices.variants.forms import CAUSALITIES
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.layers import relative
from tfm_core.models.build import build_model, init_on_meta
from tfm_core.probe.capture import capture


def built(config, shape, device="meta"):
    with init_on_meta():
        return build_model(config, shape).to_empty(device=device)


def inputs_of(shape, batch=1, device="meta"):
    """Ids of SRC and TGT tokens, or pictures, with the longest captions."""
    if isinstance(shape, TextShape):
        sizes = (SRC * shape.has_source, TGT)
        return tuple(torch.ones(batch, n, dtype=torch.long, device=device) for n in sizes)
    images = torch.zeros(batch, shape.channels, shape.image_size, shape.image_size, device=device)
    if isinstance(shape, ImageShape):
        return (images,)
    return images, torch.ones(batch, shape.tgt_len, dtype=torch.long, device=device)


def lengths(shape):
    return (SRC, shape.tgt_len if isinstance(shape, CaptionShape) else TGT)


class Touched(TorchFunctionMode):
    """Notes the modules whose parameters an operation reads, each the first time."""

    def __init__(self, model):
        super().__init__()
        self.names = {id(p): name for name, p in model.named_parameters()}
        self.modules = {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        for leaf in tree_leaves((args, kwargs)):
            if id(leaf) in self.names and func.__name__ != "__get__":
                self.modules[self.names[id(leaf)].rpartition(".")[0]] = None
        return func(*args, **(kwargs or {}))


@given(models())
def test_paths_and_shapes_are_those_of_the_model(chosen):
    config, shape = chosen
    found, model = anatomy(config, shape), built(config, shape)
    expected = {name: tuple(p.shape) for name, p in model.named_parameters()}
    assert {p.name: p.shape for p in found.parameters} == expected
    assert len(found.parameters) == len(expected)
    modules = dict(model.named_modules(remove_duplicate=False))
    for part in found.all:
        assert not part.layer or type(modules[part.path]).__name__ == part.layer, part.path
        for parameter in part.parameters:
            module, _dot, name = parameter.name.rpartition(".")
            assert module == part.path
            tensor = getattr(modules[module], name)
            assert tuple(tensor.shape) == parameter.shape
            if parameter.tied_to:
                owner, _dot, its_name = parameter.tied_to.rpartition(".")
                assert getattr(modules[owner], its_name) is tensor


@given(models())
def test_modules_are_in_the_order_of_a_state_dict(chosen):
    config, shape = chosen
    named = built(config, shape).named_modules(remove_duplicate=False)
    expected = [path for path, module in named if list(module.parameters(recurse=False))]
    assert [part.path for part in anatomy(config, shape).modules] == expected


@given(models())
def test_parts_are_in_the_order_of_the_forward_pass(chosen):
    config, shape = chosen
    model = built(config, shape)
    with Touched(model) as touched:
        model(*inputs_of(shape))
    found = dict.fromkeys(p.name.rpartition(".")[0] for p in anatomy(config, shape).parameters)
    if isinstance(shape, TextShape) and not shape.has_source:
        assert next(iter(found)) == next(iter(touched.modules)) == "src_embedding.table"
    assert list(found) == list(touched.modules)


@given(models())
def test_macs_are_half_of_the_flops_that_the_counter_counts(chosen):
    config, shape = chosen
    # a router needs numbers to send each token to some experts alone
    device = "cpu" if getattr(config, "n_experts", 0) else "meta"
    found, model = anatomy(config, shape), built(config, shape, device)
    batch = 2
    with FlopCounterMode(display=False) as counter, capture(model, only={"weights"}):
        model(*inputs_of(shape, batch, device))
    sizes = found.at(*lengths(shape))
    macs = sum(formula.value(sizes) for formula in found.macs.values())
    assert 2 * batch * macs == counter.get_total_flops()


@given(models())
def test_what_goes_in_and_out_of_a_module_has_the_shape_that_its_part_says(chosen):
    config, shape = chosen
    found, model = anatomy(config, shape), built(config, shape)
    sizes = {**found.at(*lengths(shape)), "B": 2}
    parts = {part.path: part for part in found.all if part.layer and part.outputs}
    checked = []

    def shape_of(tensor):
        factor = 1
        for name in tensor.split():
            factor *= int(name) if name.isdigit() else sizes[name]
        return factor

    def check(path):
        def hook(module, args, result):
            results = result if isinstance(result, tuple) else (result,)
            for tensors, values in ((parts[path].outputs, results), (parts[path].inputs, args)):
                first = next((v for v in values if isinstance(v, torch.Tensor)), None)
                if first is not None and tensors:
                    expected = tuple(shape_of(axis) for axis in tensors[0].shape)
                    assert tuple(first.shape) == expected, (path, tensors[0])
            checked.append(path)

        return hook

    for path, module in model.named_modules():
        takes_steps = config.family == "recurrent" and path.startswith("decoder.")
        is_shared = "embedding" in path and getattr(shape, "one_vocabulary", False)
        if path and path in parts and not takes_steps and not is_shared:
            module.register_forward_hook(check(path))
    with capture(model, only={"weights"}):
        model(*inputs_of(shape, 2))
    assert checked


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_published_models_have_the_count_of_their_papers(name):
    known = ARCHITECTURES[name]
    found = anatomy(known.model, known.shape)
    assert known.n_parameters in (None, sum(p.size for p in found.parameters))


@given(models())
def test_attentions_are_those_that_the_stacks_of_the_family_say(chosen):
    config, shape = chosen
    found = [part for part in anatomy(config, shape).all if isinstance(part, Attention)]
    plans = {path: plan for plan in attentions(config) for path in plan.paths}
    assert {part.path for part in found} == plans.keys()
    assert all(plans[part.path].is_cross == part.is_cross for part in found)
    assert all(plans[part.path].has_padding == ("padding" in part.mask) for part in found)
    ordered = {part.path for part in found if not CAUSALITIES.keys().isdisjoint(part.mask)}
    assert ordered <= {path for path, plan in plans.items() if plan.has_order}
    assert all(part.n_heads == config.n_heads for part in found)
    for part in found:  # a part that reads two tensors reads them from two places
        is_of_two = part.is_cross or part.inputs[0].shape != part.inputs[-1].shape
        assert (len(part.inputs) > 1) == is_of_two or config.family == "recurrent"
    assert {part.path.partition(".")[0] for part in found} <= {"encoder", "decoder"}
    assert {one.name for one in stacks(config)} <= {"encoder", "decoder"}


def test_every_family_has_an_anatomy_and_names_of_others_are_theirs():
    assert FAMILIES.keys() == MODEL_CONFIGS.keys()
    assert N_BUCKETS == relative.N_BUCKETS == 32  # T5, Raffel et al. 2020
    known = ARCHITECTURES["gpt2-small"]
    names = {part.path: part.names for part in anatomy(known.model, known.shape).modules}
    into = names["decoder.layers.3.self_attention.in_projection"]
    assert into.notebook == ("W_Q", "W_K", "W_V")
    assert into.hugging_face == ("transformer.h.3.attn.c_attn",)
    assert into.transformer_lens == tuple(f"blocks.3.attn.W_{one}" for one in "QKV")
    assert names["decoder.layers.3.feed_forward.up"].notebook == ("fc1", "linear_1")
    for path, one in names.items():
        assert one.hugging_face, path
        assert one.transformer_lens, path
    known = ARCHITECTURES["transformer-base"]
    names = {part.path: part.names for part in anatomy(known.model, known.shape).modules}
    lens = {path: one.transformer_lens for path, one in names.items()}
    cross = lens["decoder.layers.2.cross_attention.in_projection"]
    assert cross == tuple(f"decoder.2.cross_attn.W_{one}" for one in "QKV")
    assert lens["decoder.layers.2.feed_forward_norm"] == ("decoder.2.ln3",)
    assert lens["encoder.layers.2.feed_forward_norm"] == ("encoder.2.ln2",)
    assert all(lens.values())
    biased = anatomy(config_of("encoder-decoder", {"position": "t5-bias"}), TextShape(17, 19))
    tables = {part.path: part.names for part in biased.modules if part.path.endswith("relative")}
    assert {path: one.transformer_lens for path, one in tables.items()} == {
        f"{stack}.relative": (f"{stack}.0.attn.rel_pos_bias",) for stack in ("encoder", "decoder")
    }


TRANSFORMERS = {  # of the second block and around the blocks, as Transformers 4.57 names modules
    "bert-base": """
        embeddings.LayerNorm embeddings.position_embeddings embeddings.token_type_embeddings
        embeddings.word_embeddings pooler.dense
        encoder.layer.1.attention.output.LayerNorm encoder.layer.1.attention.output.dense
        encoder.layer.1.attention.self.key encoder.layer.1.attention.self.query
        encoder.layer.1.attention.self.value encoder.layer.1.intermediate.dense
        encoder.layer.1.output.LayerNorm encoder.layer.1.output.dense""",
    "vit-b": """
        classifier vit.layernorm vit.embeddings.cls_token vit.embeddings.position_embeddings
        vit.embeddings.patch_embeddings.projection
        vit.encoder.layer.1.attention.attention.key vit.encoder.layer.1.attention.attention.query
        vit.encoder.layer.1.attention.attention.value vit.encoder.layer.1.attention.output.dense
        vit.encoder.layer.1.intermediate.dense vit.encoder.layer.1.output.dense
        vit.encoder.layer.1.layernorm_after vit.encoder.layer.1.layernorm_before""",
    "gpt2-small": """
        lm_head transformer.ln_f transformer.wpe transformer.wte
        transformer.h.1.attn.c_attn transformer.h.1.attn.c_proj transformer.h.1.ln_1
        transformer.h.1.ln_2 transformer.h.1.mlp.c_fc transformer.h.1.mlp.c_proj""",
    "text-transformer": """
        lm_head model.encoder.embed_tokens model.decoder.embed_tokens
        model.encoder.embed_positions model.decoder.embed_positions
        model.encoder.layers.1.fc1 model.encoder.layers.1.fc2
        model.encoder.layers.1.final_layer_norm
        model.encoder.layers.1.self_attn.k_proj model.encoder.layers.1.self_attn.out_proj
        model.encoder.layers.1.self_attn.q_proj model.encoder.layers.1.self_attn.v_proj
        model.encoder.layers.1.self_attn_layer_norm
        model.decoder.layers.1.encoder_attn.k_proj model.decoder.layers.1.encoder_attn.out_proj
        model.decoder.layers.1.encoder_attn.q_proj model.decoder.layers.1.encoder_attn.v_proj
        model.decoder.layers.1.encoder_attn_layer_norm
        model.decoder.layers.1.fc1 model.decoder.layers.1.fc2
        model.decoder.layers.1.final_layer_norm
        model.decoder.layers.1.self_attn.k_proj model.decoder.layers.1.self_attn.out_proj
        model.decoder.layers.1.self_attn.q_proj model.decoder.layers.1.self_attn.v_proj
        model.decoder.layers.1.self_attn_layer_norm""",
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_names_of_transformers_are_those_of_its_models(name):
    known = ARCHITECTURES[name]
    found = {
        theirs
        for part in anatomy(known.model, known.shape).modules
        if ".layers." not in part.path or ".layers.1." in part.path
        for theirs in part.names.hugging_face
    }
    assert found == set(TRANSFORMERS[name].split())
