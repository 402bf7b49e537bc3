"""One standalone PyTorch file for exactly one configuration: readable, and it runs.

It needs torch alone, has no branch that the configuration does not take, names its modules as the
models here do, and can read the weights of a run.
"""

from __future__ import annotations

from textwrap import dedent

from tfm_core.config import (
    FAMILIES,
    CaptionerConfig,
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
from tfm_core.inspect.source import embedding, layers, models, recurrent
from tfm_core.inspect.source import embedding as answers
from tfm_core.inspect.source.functions import functions
from tfm_core.inspect.source.pictures import patches
from tfm_core.variants.poolings import POOLINGS
from tfm_core.variants.positions import POSITIONS

SECTIONS = ("attention", "feed-forward", "block", "stack", "embedding", "model")


def sections(config: ModelConfig) -> tuple[str, ...]:
    """Return the names of the sections that the file of a model has, in order."""
    return recurrent.SECTIONS if isinstance(config, RecurrentConfig) else SECTIONS


def source_code(config: ModelConfig, shape: Shape) -> str:
    """Return the whole file."""
    parts = [
        _head(config, shape),
        _constants(config, shape),
        *functions(config),
        *(section(config, shape, name) for name in sections(config)),
        _LOAD,
        _main(config, shape),
    ]
    return "\n\n".join(part.strip("\n") + "\n" for part in parts if part)


def section(config: ModelConfig, shape: Shape, name: str) -> str:
    """Return the source of one of ``sections``, as it stands in the file."""
    if isinstance(config, RecurrentConfig):
        assert isinstance(shape, TextShape)
        return recurrent.section(config, shape, name)
    if name == "embedding":
        return "\n\n".join(part for part in _embedding(config, shape) if part)
    if name == "model":
        return models.model_class(config, shape)
    made = {
        "attention": layers.attention,
        "feed-forward": layers.feed_forward,
        "block": layers.block,
        "stack": layers.stack,
    }
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
    parts += [answers.label_output(config, shape)] if shape.is_label else []
    return parts + ([answers.pooler(config)] if shape.head == "pooler" else [])


def _head(config: ModelConfig, shape: Shape) -> str:
    if isinstance(config, RecurrentConfig):
        return recurrent.head(config)
    label, sizes = (
        FAMILIES[config.family].label,
        f"d_model {config.d_model}, {config.n_heads} heads",
    )
    return (
        f'"""{label}, {sizes}: exactly one configuration.\n\n'
        "B batch, T tokens, H heads. Masks are bool, True = may attend. Needs torch only.\n"
        '"""\n\n'
        "import json\nimport math\nimport sys\n\n"
        "import torch\nimport torch.nn.functional as F\nfrom torch import nn"
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
        values |= {"TGT_WORDS": shape.tgt_vocabulary, "PAD": shape.pad_id}
        values |= {"MAX_LEN": shape.tgt_len} if _has_length(config.text_position) else {}
    else:
        assert isinstance(shape, TextShape)
        values |= {"SRC_WORDS": shape.src_vocabulary, "TGT_WORDS": shape.tgt_vocabulary}
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


_LOAD = dedent('''\
    def load(path):
        """Return the weights of a run's checkpoint.safetensors: JSON, then numbers."""
        with open(path, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            data = bytearray(file.read())
        weights = {}
        for name, entry in header.items():
            if name.startswith("model/"):
                begin, end = entry["data_offsets"]
                values = torch.frombuffer(data[begin:end], dtype=torch.float32)
                weights[name.removeprefix("model/")] = values.reshape(entry["shape"])
        return weights
    ''')


def _main(config: ModelConfig, shape: Shape) -> str:
    if isinstance(shape, ImageShape):
        inputs = ["images = torch.randn(2, CHANNELS, IMAGE, IMAGE)"]
        call = "model(images)"
    elif isinstance(shape, CaptionShape):
        inputs = [
            "images = torch.randn(2, CHANNELS, IMAGE, IMAGE)",
            "tgt_in = torch.randint(PAD + 1, TGT_WORDS, (2, 5))",
        ]
        call = "model(images, tgt_in)"
    else:
        inputs = [
            "src = torch.randint(PAD + 1, SRC_WORDS, (2, 7))"
            if shape.has_source
            else "src = torch.empty(2, 0, dtype=torch.long)",
            "tgt_in = torch.randint(PAD + 1, TGT_WORDS, (2, 5))",
        ]
        call = "model(src, tgt_in)"
    lines = [
        "model = Model().eval()",
        "if len(sys.argv) > 1:  # the checkpoint of a run",
        "    model.load_state_dict(load(sys.argv[1]))",
        *inputs,
        "with torch.no_grad():",
        f'    print("answer", tuple({call}.shape))',
        'print(f"{sum(p.numel() for p in model.parameters()):,} parameters")',
    ]
    body = "\n".join(f"    {line}" for line in lines)
    return f'if __name__ == "__main__":\n{body}\n'
