"""One standalone PyTorch file for exactly one configuration: readable, and it runs.

It needs torch alone, has no branch that the configuration does not take, names its modules as its
family does, and can read the weights of a run. With what it carries of the run's data it answers
pictures and sentences as they are.
"""

from __future__ import annotations

import re
from textwrap import dedent

from tfm_core.config import (
    FAMILIES,
    CaptionerConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    ModelConfig,
    RecurrentConfig,
    TransformerConfig,
    ViTConfig,
)
from tfm_core.config.shape import (
    CLS_ID,
    CaptionShape,
    ImageShape,
    Shape,
    TextShape,
    patches_per_side,
)
from tfm_core.facts.own_names import own_names
from tfm_core.inspect.source import embedding, layers, models, recurrent, use
from tfm_core.inspect.source.carried import Carried
from tfm_core.inspect.source.functions import WEIGHTS, functions
from tfm_core.inspect.source.layers import AttentionForm
from tfm_core.inspect.source.pictures import patches
from tfm_core.variants.poolings import POOLINGS
from tfm_core.variants.positions import POSITIONS

SECTIONS = ("attention", "feed-forward", "block", "stack", "embedding", "model")


def source_code(
    config: ModelConfig,
    shape: Shape,
    *,
    form: AttentionForm = "written",
    data: Carried | None = None,
) -> str:
    """Return the whole file.

    form: how attention is written; a recurrent model's is always written out. data: what it carries
    of a run's data; without it the file has no texts and no pictures to answer.
    """
    names = recurrent.SECTIONS if isinstance(config, RecurrentConfig) else SECTIONS
    sections = [_section(config, shape, name, form) for name in names]
    if data is not None:
        sections[-1] += "\n" + use.method(config, shape, data)
    parts = [
        _constants(config, shape) + ("" if data is None else use.constants(config, shape, data)),
        *functions(config),
        *([] if data is None else use.functions(data)),
        *sections,
        _load(config, shape),
        _main(config, shape, data),
    ]
    body = "\n\n".join(part.strip("\n") + "\n" for part in parts if part)
    return f"{_head(config, form, body)}\n\n{body}"


def _section(config: ModelConfig, shape: Shape, name: str, form: AttentionForm) -> str:
    if isinstance(config, RecurrentConfig):
        assert isinstance(shape, TextShape)
        return recurrent.section(config, shape, name)
    if name == "embedding":
        return "\n\n".join(part for part in _embedding(config, shape) if part)
    if name == "model":
        return models.model_class(config, shape, form)
    if name == "attention":
        written = layers.attention(config, form)
        return f"{written}\n\n{WEIGHTS}" if form == "written" else written
    made = {"feed-forward": layers.feed_forward, "block": layers.block, "stack": layers.stack}
    return made[name](config)


def _embedding(config: TransformerConfig, shape: Shape) -> list[str]:
    if isinstance(config, ViTConfig):
        return [patches(config), embedding.positions(config, shape)]
    if isinstance(config, CaptionerConfig):
        return [
            patches(config),
            embedding.positions(config, shape),
            embedding.TOKEN_EMBEDDING,
            embedding.word_positions(config),
        ]
    assert isinstance(shape, TextShape)
    parts = [embedding.token_embedding(shape), embedding.positions(config, shape)]
    parts += [embedding.segments(config)] if shape.n_segments else []
    return parts + ([embedding.pooler(config)] if shape.head == "pooler" else [])


_SEEN = {
    "written": "Ask for return_weights=True, and you get the attention of every layer too.",
    "fused": "Attention is one call of PyTorch's fused kernel, which never has its weights.",
}


def _head(config: ModelConfig, form: AttentionForm, body: str) -> str:
    """Return the docstring, and the imports that the body needs."""
    if isinstance(config, RecurrentConfig):
        title, form = recurrent.title(config), "written"
    else:
        label = FAMILIES[config.family].label
        is_masked = config.family not in layers.UNMASKED
        masks = " Masks are bool, True = may attend." if is_masked else ""
        title = (
            f"{label}, d_model {config.d_model}, {config.n_heads} heads: exactly one "
            "configuration.\n\n"
            f"B batch, T tokens, H heads.{masks} Needs torch only."
        )
    wanted = ("argparse", "json", "math", "re", "unicodedata")
    imports = [f"import {name}" for name in wanted if re.search(rf"\b{name}\.", body)]
    torch = ["import torch", *(["import torch.nn.functional as F"] if "F." in body else [])]
    return "\n".join(
        [f'"""{title}\n{_SEEN[form]}\n"""', "", *imports, "", *torch, "from torch import nn"]
    )


def _constants(config: ModelConfig, shape: Shape) -> str:
    if isinstance(config, RecurrentConfig):
        assert isinstance(shape, TextShape)
        return _assigned(recurrent.constants(config, shape))
    values: dict[str, object] = {
        "D_MODEL": config.d_model,
        "N_HEADS": config.n_heads,
        "D_HEAD": config.d_head,
        "D_FF": config.d_ff,
    }
    if config.dropout:
        values["DROPOUT"] = config.dropout
    if isinstance(config, EncoderDecoderConfig | CaptionerConfig):
        values["N_ENCODER_LAYERS"] = config.n_encoder_layers
        values["N_DECODER_LAYERS"] = config.n_decoder_layers
    else:
        values["N_LAYERS"] = config.n_layers
    if isinstance(config, ViTConfig):
        assert isinstance(shape, ImageShape)
        side = patches_per_side(shape.image_size, config.patch_size)
        values |= {"IMAGE": shape.image_size, "CHANNELS": shape.channels}
        values |= {"PATCH": config.patch_size, "SIDE": side}
        values |= {
            "N_TOKENS": side**2 + POOLINGS[config.pooling].has_cls,
            "N_CLASSES": shape.n_classes,
        }
    elif isinstance(config, CaptionerConfig):
        assert isinstance(shape, CaptionShape)
        side = patches_per_side(shape.image_size, config.patch_size)
        values |= {"IMAGE": shape.image_size, "CHANNELS": shape.channels}
        values |= {"PATCH": config.patch_size, "SIDE": side, "N_TOKENS": side**2}
        values |= {"N_WORDS": shape.tgt_vocabulary, "PAD": shape.pad_id}
        values |= {"MAX_LEN": shape.tgt_len} if _has_length(config.text_position) else {}
    else:
        assert isinstance(shape, TextShape)
        values |= models.vocabularies(config, shape)
        if shape.pad_id is not None:
            values["PAD"] = shape.pad_id
        if shape.is_label:
            values["N_LABELS"] = shape.n_labels
            values |= {"N_HIDDEN": shape.n_hidden} if shape.n_hidden else {}
        if shape.has_cls:
            values["CLS"] = CLS_ID
        if _has_length(config.position):
            values["MAX_LEN"] = config.max_len
        if config.window:
            values["WINDOW"] = config.window
        if shape.n_segments:
            values["N_SEGMENTS"] = shape.n_segments
    return _assigned(values)


def _has_length(position: str) -> bool:
    """Return whether a class of positions must know the longest sequence."""
    added = POSITIONS[position].added
    return added is not None and added.has_length


def _assigned(values: dict[str, object]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in values.items())


def _load(config: ModelConfig, shape: Shape) -> str:
    """Return the function that reads a checkpoint, and what is called otherwise there."""
    names = own_names(config, shape)
    if not names:
        return _LOAD.format(named='name.removeprefix("model/")')
    kept = [new for new in names.values() if new is not None]
    lines = [f'    "{old}.": "{new or kept[0]}.",\n' for old, new in names.items()]
    table = "".join(
        ["NAMES = {  # of a part in the app's checkpoints: its name here\n", *lines, "}\n"]
    )
    named = 'own_name(name.removeprefix("model/")) if name.startswith("model/") else name'
    load = _LOAD.format(named=named)
    return f"{table}\n\n{_NAMED}\n\n{load}"


_NAMED = dedent('''\
    def own_name(name):
        """The name of a weight here, from its name in a checkpoint."""
        for old, new in NAMES.items():
            if name.startswith(old):
                return new + name.removeprefix(old)
        return name
    ''')
_LOAD = dedent('''\
    def load(path):
        """The weights in a checkpoint or weights.safetensors: its head is JSON, then numbers."""
        with open(path, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            data = bytearray(file.read())
        if any(name.startswith("average/") for name in header):  # averaged weights are those to use
            header = {{name: one for name, one in header.items() if name[:6] != "model/"}}
            header = {{name.replace("average/", "model/"): one for name, one in header.items()}}
        weights = {{}}
        for name, entry in header.items():
            if not name.startswith(("optimizer/", "__metadata__")):
                begin, end = entry["data_offsets"]
                kind = {{"F32": torch.float32, "F16": torch.float16}}[entry["dtype"]]
                values = torch.frombuffer(data[begin:end], dtype=kind).float()
                own = {named}
                weights[own] = values.reshape(entry["shape"])
        return weights
    ''')


def _main(config: ModelConfig, shape: Shape, data: Carried | None) -> str:
    inputs, call = _tried(config, shape)
    parse = ["parser = argparse.ArgumentParser()"]
    if data is not None:
        name, words = use.asked(data)
        parse += [f'parser.add_argument("{name}", nargs="?", help="{words}")']
    lines = [
        *parse,
        'parser.add_argument("--checkpoint", help="checkpoint.safetensors of a run")',
        "given = parser.parse_args()",
        "model = Model().eval()",
        "if given.checkpoint:",
        "    model.load_state_dict(load(given.checkpoint))",
    ]
    shown = [
        *inputs,
        "with torch.no_grad():",
        f'    print("answer", tuple({call}.shape))',
        'print(f"{sum(p.numel() for p in model.parameters()):,} parameters")',
    ]
    if data is None:
        lines += shown
    else:
        answer = f"model.{data.verb}(given.{name})"
        is_pair = data.verb in ("classify", "label")
        lines += [
            f"if given.{name} is None:",
            *(f"    {line}" for line in shown),
            "elif given.checkpoint:",
            "    try:",
            f'        print("{{}}, {{:.1%}} sure".format(*{answer}))'
            if is_pair
            else f"        print({answer})",
            "    except (OSError, ValueError) as error:",
            "        parser.error(str(error))",
            "else:",
            '    parser.error("without --checkpoint the weights are random")',
        ]
    body = "\n".join(f"    {line}" for line in lines)
    return f'if __name__ == "__main__":\n{body}\n'


def _tried(config: ModelConfig, shape: Shape) -> tuple[list[str], str]:
    """Return lines that make something to read, and the call that reads it."""
    images = "images = torch.randn(2, CHANNELS, IMAGE, IMAGE)"
    if isinstance(shape, ImageShape):
        return [images], "model(images)"
    if isinstance(shape, CaptionShape):
        return [images, "words = torch.randint(PAD + 1, N_WORDS, (2, 5))"], "model(images, words)"
    first = "0" if shape.pad_id is None else "PAD + 1"
    if isinstance(config, EncoderDecoderConfig | RecurrentConfig):
        return [
            f"src = torch.randint({first}, SRC_WORDS, (2, 7))",
            f"tgt_in = torch.randint({first}, TGT_WORDS, (2, 5))",
        ], "model(src, tgt_in)"
    is_pair = isinstance(config, DecoderOnlyConfig) and not shape.one_vocabulary
    words = "SOURCE_WORDS + TARGET_WORDS" if is_pair else "N_WORDS"
    return [f"ids = torch.randint({first}, {words}, (2, 7))"], "model(ids)"
