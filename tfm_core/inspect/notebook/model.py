"""The model here that is most like a pasted one, what it counts, and where both differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from math import isqrt
from typing import Any

from tfm_core.anatomy.layers import N_BUCKETS
from tfm_core.config.base import ConfigError
from tfm_core.config.model import MODEL_CONFIGS
from tfm_core.config.shape import ImageShape, Shape, TextShape
from tfm_core.facts.architectures import ARCHITECTURES, Architecture
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.inspect.notebook.blocks import Stack, stacks_of, unbuildable
from tfm_core.inspect.notebook.pasted import Layer, Pasted, Unread, read
from tfm_core.sentences import N_, StudentError
from tfm_core.variants.activations import ACTIVATIONS

Values = dict[str, Any]
_USUAL: Mapping[str, object] = {"norm_first": False, "activation": "relu", "dropout": 0.0}
"""What a notebook's model is where it does not say: that of 2017."""
_PYTORCH: Mapping[str, object] = {
    "family": "encoder-decoder", "d_model": 512, "n_heads": 8, "n_encoder_layers": 6,
    "n_decoder_layers": 6, "d_ff": 2048, "dropout": 0.1, "activation": "relu",
    "norm_first": False, "final_norm": "always",
}  # fmt: skip
"""What ``nn.Transformer`` is where its call does not say."""
_OF_CLASS = {
    "Encoder": "text-encoder",
    "SimpleTransformer": "text-simple",
    "SentimentAnalyzer": "text-sentiment",
    "EncoderDecoderTransformer": "text-korean",
    "My_Transformer": "text-synthetic",
    "Transformer": "text-transformer",
    "MyVIT": "text-vit",
}
_STEM = re.compile(r"patch|mapper|stem", re.I)
_WORDS, _LEN, _PIXELS = 100, 10, 28
_MAX_WORDS, _MAX_LEN = 1_000_000, 8_192


@dataclass(frozen=True, slots=True)
class YourModel:
    """A pasted model, built here.

    counted: the parameters that the text shows or states, None where neither. differences:
    sentences on what differs, and on what the text leaves open. sizes: a short text that gives the
    same model again, for a link.
    """

    architecture: Architecture
    counted: int | None
    total: int
    differences: tuple[str, ...]
    unread: tuple[Unread, ...]
    n_lines: int
    sizes: str


@lru_cache(maxsize=64)
def your_model(text: str) -> YourModel:
    """Return the model of a text. Raises ValueError, in a sentence, where it says none."""
    pasted = read(text)
    said: list[str] = []
    values, shape = _of_layers(pasted, said) if pasted.layers else _of_sizes(pasted)
    config, found = _made(values, shape)
    lengths = _lengths(pasted, found, getattr(config, "max_len", _MAX_LEN))
    label = N_("Your notebook")
    known = Architecture("notebook", label, config, found, *lengths, batch=2)
    total = parameter_table(config, found).total
    if pasted.counted is not None and pasted.layers and pasted.total not in (None, pasted.counted):
        said.append(
            N_(
                "The text states {stated:,} parameters; its own lines add up to {n:,}.",
                stated=pasted.total,
                n=pasted.counted,
            )
        )
    sizes = _sizes_text(known)
    return YourModel(
        known, pasted.counted, total, tuple(said), tuple(pasted.unread), pasted.n_lines, sizes
    )


def _made(values: Values, shape: Values) -> tuple[Any, Shape]:
    family = str(values.pop("family", "encoder-only"))
    if family not in MODEL_CONFIGS or family in ("recurrent", "captioner"):
        known = [name for name in MODEL_CONFIGS if name not in ("recurrent", "captioner")]
        raise StudentError(
            "family is {family}; choose from {known}.", family=family[:40], known=", ".join(known)
        )
    config = MODEL_CONFIGS[family]
    used = {name: value for name, value in values.items() if name in config.model_fields}
    try:
        made = config.parse(used)
    except ConfigError as error:
        raise StudentError(error.sentences[0]) from None
    kind: type[Any] = ImageShape if family == "vit" else TextShape
    names = {one.name for one in fields(kind)}
    sizes = {name: value for name, value in shape.items() if name in names}
    found: Shape = kind(**sizes)
    parameter_table(made, found)  # refuses patches that do not divide the picture
    return made, found


def _lengths(pasted: Pasted, shape: Shape, longest: int) -> tuple[int, int]:
    if not isinstance(shape, TextShape):
        return 0, 0
    src, tgt = (_whole(pasted.sizes, name, _LEN, 1, _MAX_LEN) for name in ("src_len", "tgt_len"))
    src, tgt = min(src, longest), min(tgt, longest)
    if not shape.has_source:
        return 0, tgt
    return src, 1 if shape.is_label else tgt if shape.head == "tokens" else src


def _whole(sizes: Mapping[str, str], name: str, otherwise: int, low: int, high: int) -> int:
    """Return a size as a number. Raises ValueError, in a sentence, for what is none."""
    text = sizes.get(name)
    if text is None:
        return otherwise
    if not text.isdecimal() or not low <= int(text[:12]) <= high:
        raise StudentError(
            "{name} is {text}; it must be a whole number from {low:,} to {high:,}.",
            name=name, text=text[:20], low=low, high=high,
        )  # fmt: skip
    return int(text)


_FLAGS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


def _given(sizes: Mapping[str, str]) -> Values:
    """Return the settings that a text names, as they stand there; the model refuses wrong ones."""
    names = {name for config in MODEL_CONFIGS.values() for name in config.model_fields}
    given: Values = {name: text for name, text in sizes.items() if name in names}
    for name in ("norm_first", "bias", "projection_bias", "tie_embeddings"):
        if name in given:
            given[name] = _FLAGS.get(str(given[name]).lower(), given[name])
    if "mistakes" in given:
        given["mistakes"] = str(given["mistakes"]).replace("+", ",")
    if "activation" in given:
        given["activation"] = _activation(str(given["activation"])) or given["activation"]
    if "d_head" in sizes and "d_model" in given and "n_heads" not in given:
        d_head = _whole(sizes, "d_head", 1, 1, 16_384)
        given["n_heads"] = int(given["d_model"]) // d_head if given["d_model"].isdecimal() else 1
    return given


def _of_sizes(pasted: Pasted) -> tuple[Values, Values]:
    """Return the settings and the shape of a model of which a text gives the sizes alone."""
    sizes = pasted.sizes
    known = ARCHITECTURES.get(_OF_CLASS.get(pasted.root, ""))
    if not sizes and known is None:
        raise StudentError(
            "No model was found. Paste sizes such as d_model = 512, what print(model) says, or a "
            "table of parameters."
        )
    if pasted.root == "nn.Transformer":
        values: Values = {**_PYTORCH, **_given(sizes)}
        shape: Values = {"scale_embedding": False}
    elif known is not None and "family" not in sizes:
        values = {**known.model.model_dump(), **_given(sizes)}
        shape = asdict(known.shape)
    else:
        values = {**_USUAL, "family": _family_of(pasted), **_given(sizes)}
        shape = {"scale_embedding": False}
    return values, _shape(values["family"], sizes, shape)


def _family_of(pasted: Pasted) -> str:
    sizes, words = pasted.sizes, " ".join(sorted(pasted.classes)).lower()
    if "patch_size" in sizes or "vit" in words:
        return "vit"
    both = {"n_decoder_layers", "n_encoder_layers", "tgt_vocabulary"} & sizes.keys()
    if both or words == "transformer":
        return "encoder-decoder"
    return "decoder-only" if "gpt" in words else "encoder-only"


def _shape(family: str, sizes: Mapping[str, str], usual: Values) -> Values:
    shape = {**usual}
    if family == "vit":
        shape = {"image_size": _PIXELS, "channels": 1, "n_classes": 10, **shape}
        for name, most in (("image_size", 4_096), ("channels", 256), ("n_classes", _MAX_WORDS)):
            shape[name] = _whole(sizes, name, shape[name], 1, most)
        return shape
    shape = {"src_vocabulary": _WORDS, "tgt_vocabulary": 0, **shape}
    src = _whole(sizes, "src_vocabulary", shape["src_vocabulary"], 1, _MAX_WORDS)
    tgt = _whole(sizes, "tgt_vocabulary", shape["tgt_vocabulary"] or src, 1, _MAX_WORDS)
    if shape.get("one_vocabulary") or family == "decoder-only":
        src = tgt = src if "src_vocabulary" in sizes else tgt
    shape |= {"src_vocabulary": src, "tgt_vocabulary": tgt}
    if family == "decoder-only":
        shape |= {"one_vocabulary": True, "has_source": False}
    elif family == "encoder-only" and "head" not in sizes and "head" not in usual:
        shape |= {"one_vocabulary": True, "head": "states", "tgt_vocabulary": src}
    for name in ("n_hidden", "n_labels", "n_segments"):
        shape[name] = _whole(sizes, name, shape.get(name, 0), 0, _MAX_WORDS)
    for name in ("one_vocabulary", "output_bias", "scale_embedding", "has_source"):
        if name in sizes:
            shape[name] = _FLAGS.get(sizes[name].lower(), True)
    if "head" in sizes:
        shape["head"] = sizes["head"]
    return shape


def _activation(layer: str) -> str | None:
    """Return our activation of a class or a name of one."""
    name = layer.lower().replace("_", "")
    if name in ACTIVATIONS or layer in ACTIVATIONS:
        return layer if layer in ACTIVATIONS else name
    if "newgelu" in name or "gelunew" in name or "tanh" in name:
        return "gelu_tanh"
    return next((one for one in ("gelu", "relu", "silu") if one in name), None)


def _of_layers(pasted: Pasted, said: list[str]) -> tuple[Values, Values]:
    """Return the settings and the shape of a model of which a text shows the layers."""
    is_tied = _count_ties_once(pasted, said)
    stacks, around = stacks_of(pasted)
    if not stacks:
        raise StudentError("No blocks with attention were found among {n} layers.",
                           n=len(pasted.layers))  # fmt: skip
    why = unbuildable(stacks)
    if why:
        raise StudentError(why)
    block = stacks[-1].block
    values: Values = {**_USUAL, "d_model": block.d_model, "d_ff": block.d_ff}
    _of_blocks(pasted, stacks, values, said)
    family = _family(pasted, stacks, around)
    values["family"] = family
    for name, stack in zip(
        ("n_encoder_layers", "n_decoder_layers") if len(stacks) > 1 else ("n_layers",),
        sorted(stacks, key=lambda one: one.block.n_attentions),
        strict=True,
    ):
        values[name] = stack.n_layers
    if len(stacks) > 1 and {one.block.n_attentions for one in stacks} != {1, 2}:
        said.append(N_("No block of yours looks at the other stack; here the decoder's do."))
    ends = _Ends(pasted, values, block.d_model, said, is_tied)
    shape = ends.of_pictures(around) if family == "vit" else ends.of_words(family, around)
    given = _given(pasted.sizes)
    said.extend(
        N_("{name} = {text} is not followed: the layers say it.", name=name, text=text[:20])
        for name, text in sorted((name, str(value)) for name, value in given.items())
        if name not in _UNPRINTED and name != "family" and str(values.get(name, "")) != text
    )
    values |= {name: value for name, value in given.items() if name in _UNPRINTED}
    unsaid = {name: text for name, text in pasted.sizes.items() if name not in shape}
    return values, _shape(family, unsaid, shape)


_UNPRINTED = {
    "n_heads", "norm_first", "activation", "position", "max_len", "pooling", "window",
}  # fmt: skip
"""What layers do not say, so that a line beside them may."""


def _count_ties_once(pasted: Pasted, said: list[str]) -> bool:
    """Take out the layers that a print of Transformers shows again, though their weight is one.

    ``shared`` of BART, Marian and T5 is the table of both stacks and of the output; ``wte`` of
    GPT-2 that of its output. Returns whether there were any.
    """
    tables = [one for one in pasted.layers if one.kind == "embedding"]
    owner = next((one for one in tables if re.search(r"\b(shared|wte)$", one.path)), None)
    if owner is None:
        return False
    sizes = {owner.into, owner.out}
    again = [
        one
        for one in pasted.layers
        if one is not owner and {one.into, one.out} == sizes and not one.has_bias
        and re.search(r"embed_tokens$|lm_head$", one.path)
    ]  # fmt: skip
    for one in again:
        pasted.layers.remove(one)
    if again:
        names = ", ".join(one.path for one in again)
        said.append(
            N_("{names}: the weights of “{owner}” again, counted once.", names=names,
               owner=owner.path)
        )  # fmt: skip
    return bool(again)


def _family(pasted: Pasted, stacks: Sequence[Stack], around: Sequence[Layer]) -> str:
    words = " ".join([*pasted.classes, pasted.root, *(one.path for one in around)]).lower()
    if len(stacks) > 1:
        return "encoder-decoder"
    if any(one.kind == "conv" for one in around) or "patch" in words or "vit" in words:
        return "vit"
    has_cls = any(re.search(r"(^|[._])cls(_token)?$", one.path) for one in around)
    if "linear_mapper" in words or "class_token" in words or has_cls:
        return "vit"
    if pasted.sizes.get("family") in ("encoder-only", "decoder-only"):
        return pasted.sizes["family"]
    is_writer = any(word in words for word in ("gpt", "lm_head", "causallm", "decoder"))
    return "decoder-only" if is_writer else "encoder-only"


def _of_blocks(pasted: Pasted, stacks: Sequence[Stack], values: Values, said: list[str]) -> None:
    block = stacks[-1].block
    for stack in stacks:
        if not stack.are_equal:
            said.append(N_("Your blocks differ from each other; here all are as the first."))
        for layer in stack.block.rest:
            if "relative_attention_bias" in layer.path and layer.into == N_BUCKETS:
                values["position"] = "t5-bias"  # one table for all blocks of a stack
            else:
                said.append(_missing(layer, stack.n_layers))
    mistakes = []
    if block.sliced:
        mistakes.append("sliced-heads")
    elif not block.has_output:
        mistakes.append("no-output-projection")
    values["n_heads"] = block.sliced or _heads(pasted, block.d_model, said)
    if block.sliced and block.has_output:
        said.append(N_("Your heads on slices are followed by a matrix; here they are not."))
    _of_norms(pasted, stacks, values, mistakes, said)
    values["mistakes"] = ",".join(mistakes)
    _of_biases(block.bias, block.attention_bias, values, said)
    lost = sum(stack.block.n_lost_biases * stack.n_layers for stack in stacks)
    if lost:
        said.append(
            N_("Only some matrices of your attention have biases ({n:,} parameters); here none "
               "has.", n=lost)
        )  # fmt: skip
    _of_activation(pasted, block.is_gated, values, said)
    shares = {one for one in pasted.dropouts if one}
    values["dropout"] = max(shares, default=0.0)
    if len(pasted.dropouts) > 1:
        listed = ", ".join(f"{one:g}" for one in sorted(pasted.dropouts))
        said.append(N_("Your dropouts are {listed}; here all are the largest.", listed=listed))


def _heads(pasted: Pasted, d_model: int, said: list[str]) -> int:
    if "n_heads" in pasted.sizes or "d_head" in pasted.sizes:
        given = _given({"d_model": str(d_model), **pasted.sizes})
        text = str(given["n_heads"])
        return int(text) if text.isdecimal() and int(text[:6]) > 0 else 1
    n = d_model // 64 if d_model % 64 == 0 else next(h for h in (4, 2, 1) if d_model % h == 0)
    said.append(
        N_("No line says how many heads; {n} of {width} are taken. Add n_heads = … (the count "
           "stays the same).", n=n, width=d_model // n)
    )  # fmt: skip
    return n


def _of_norms(
    pasted: Pasted, stacks: Sequence[Stack], values: Values, mistakes: list[str], said: list[str]
) -> None:
    block = stacks[-1].block
    if not block.n_norms:
        values["norm"] = "none"
        return
    if block.n_norms == 1:
        mistakes.append("shared-norm")
    elif block.n_norms != block.n_attentions + 1:
        said.append(N_("Your blocks have {n} norms; here one for each sublayer.", n=block.n_norms))
    values["norm"] = "rmsnorm" if "rms" in block.norm_layer.lower() else "layernorm"
    if block.eps is not None:
        values["norm_eps"] = block.eps
    given = _FLAGS.get(pasted.sizes.get("norm_first", "").lower())
    values["norm_first"] = bool(block.is_norm_before) if given is None else given
    if block.is_norm_before is None and "norm_first" not in pasted.sizes:
        said.append(
            N_("No line says where the norms stand; here after each sum. Add norm_first = true "
               "for before.")
        )  # fmt: skip


def _of_biases(bias: bool, attention_bias: bool, values: Values, said: list[str]) -> None:
    values["bias"], values["projection_bias"] = bias or attention_bias, attention_bias
    if attention_bias and not bias:
        said.append(N_("Your feed-forward layers have no biases; here all layers have them."))


def _of_activation(pasted: Pasted, is_gated: bool, values: Values, said: list[str]) -> None:
    found = [_activation(layer) for path, layer in pasted.plain.items() if "pooler" not in path]
    names = [name for name in found if name is not None]
    name = max(set(names), key=names.count) if names else None
    if is_gated:
        values["activation"] = "swiglu"
        if name not in (None, "silu"):
            said.append(
                N_("Your feed-forward layers are gated by {name}; here by SiLU.", name=name)
            )
    elif name == "silu":
        said.append(N_("SiLU without a gate is not built here; ReLU is taken."))
    elif name in ACTIVATIONS and not ACTIVATIONS[str(name)].is_gated:
        values["activation"] = name
    elif "activation" not in pasted.sizes:
        said.append(N_("No line names the activation; ReLU is taken. Add activation = gelu."))


def _missing(layer: Layer, times: int = 1) -> str:
    return N_(
        "“{path}” ({n:,} parameters) has no place here.",
        path=layer.path[-60:],
        n=layer.n_parameters * max(times, layer.times),
    )


@dataclass(slots=True)
class _Ends:
    """Reads what stands around the blocks."""

    pasted: Pasted
    values: Values
    d_model: int
    said: list[str]
    is_tied: bool

    def of_words(self, family: str, around: Sequence[Layer]) -> Values:
        """Return the shape of a model of words."""
        shape: Values = {"scale_embedding": False}
        rest = [*around]
        tables = self._take(rest, lambda one: one.kind == "embedding" and one.out == self.d_model)
        positions = [one for one in tables if "pos" in one.path.lower() or "wpe" in one.path]
        segments = [one for one in tables if "type" in one.path or "segment" in one.path]
        words = [one for one in tables if one not in positions and one not in segments]
        positions += self._take(
            rest,
            lambda one: one.kind == "parameter" and "pos" in one.path.lower()
            and one.out % self.d_model == 0,
        )  # fmt: skip
        self._positions(positions)
        self._vocabularies(family, shape, words)
        early = self._take(
            rest,
            lambda one: (
                one.kind == "norm" and re.search(r"emb|segment", one.path.lower()) is not None
            ),
        )
        norms = self._take(rest, lambda one: one.kind == "norm" and one.out == self.d_model)
        if segments:
            shape["n_segments"] = segments[0].into
            early = early[1:]  # here a norm follows segments
        self.said.extend(_missing(one) for one in early)
        self._final_norms(family, norms)
        self._head(family, shape, rest)
        self.said.extend(_missing(one) for one in rest)
        return shape

    def of_pictures(self, around: Sequence[Layer]) -> Values:
        """Return the shape of a Vision Transformer."""
        rest, sizes = [*around], self.pasted.sizes
        shape: Values = {}
        convs = self._take(rest, lambda one: one.kind == "conv" and one.out == self.d_model)
        heads = [one for one in rest if one.kind == "linear"]
        head = heads[-1] if heads else None
        stem = next(
            (
                one
                for one in heads[:-1]
                if one.out == self.d_model and (one.into != self.d_model or _STEM.search(one.path))
            ),
            None,
        )
        if convs:
            self.values["patch_size"], shape["channels"] = convs[0].side, convs[0].into
        elif stem is not None:
            rest.remove(stem)
            channels = _whole(sizes, "channels", 3 if stem.into % 3 == 0 else 1, 1, 256)
            shape["channels"] = channels
            self.values["patch_size"] = max(1, isqrt(stem.into // channels))
        if head is not None and head.into == self.d_model:
            rest.remove(head)
            shape["n_classes"] = head.out
        self._of_patches(rest, shape)
        self._final_norms("vit", self._take(rest, lambda one: one.kind == "norm"))
        self.said.extend(_missing(one) for one in rest)
        return shape

    def _of_patches(self, rest: list[Layer], shape: Values) -> None:
        usual = 224 if shape.get("channels") == 3 else _PIXELS
        tables = self._take(rest, lambda one: "pos" in one.path.lower() and one.kind != "linear")
        rows = sum(one.into * one.out for one in tables) // self.d_model
        if rows > 1:  # a row for each patch, and for CLS
            usual = isqrt(rows) * int(self.values.get("patch_size", 1))
        shape["image_size"] = _whole(self.pasted.sizes, "image_size", usual, 1, 4_096)
        if "image_size" not in self.pasted.sizes and rows < 2:
            self.said.append(
                N_("No line says how large the pictures are; {n} pixels are taken. Add "
                   "image_size = ….", n=usual)
            )  # fmt: skip
        self.values |= {"pooling": "cls", "position": "learned"}
        own = [*tables, *self._take(rest, lambda one: one.kind == "parameter")]
        if not own:
            self.said.append(
                N_("A print shows no nn.Parameter: a CLS token and a table of positions are taken.")
            )

    def _take(self, rest: list[Layer], fits: Callable[[Layer], bool]) -> list[Layer]:
        found = [one for one in rest if fits(one)]
        for one in found:
            rest.remove(one)
        return found

    def _positions(self, positions: Sequence[Layer]) -> None:
        rows = [
            one.into if one.kind == "embedding" else one.out // self.d_model for one in positions
        ]
        layers = " ".join(self.pasted.plain.values()).lower()
        if "rotary" in layers:
            self.values["position"] = "rotary"
        elif self.values.get("position") == "t5-bias":
            return
        elif not rows and "position" not in self.pasted.sizes:
            self.said.append(
                N_("No table of positions is printed (an nn.Parameter never is); sine waves are "
                   "taken. Add position = learned, max_len = ….")
            )  # fmt: skip
        if rows:
            self.values |= {"position": "learned", "max_len": min(max(rows), _MAX_LEN)}
            if max(rows) > _MAX_LEN:
                self.said.append(
                    N_("Your table of positions has {n:,} rows; here at most {most:,}.",
                       n=max(rows), most=_MAX_LEN)
                )  # fmt: skip

    def _vocabularies(self, family: str, shape: Values, words: Sequence[Layer]) -> None:
        sizes = [one.into for one in words]
        if not sizes:
            n = _whole(self.pasted.sizes, "src_vocabulary", _WORDS, 1, _MAX_WORDS)
            self.said.append(
                N_(
                    "Yours reads vectors; here an embedding of {n:,} words ({size:,} parameters) "
                    "is added.",
                    n=n,
                    size=n * self.d_model * (2 if family == "encoder-decoder" else 1),
                )
            )
            shape["src_vocabulary"] = shape["tgt_vocabulary"] = n
            return
        shape["src_vocabulary"], shape["tgt_vocabulary"] = sizes[0], sizes[-1]
        if len({one.path for one in words}) == 1 or family != "encoder-decoder":
            shape["one_vocabulary"] = True

    def _final_norms(self, family: str, norms: Sequence[Layer]) -> None:
        wanted = 2 if family == "encoder-decoder" else 1
        usual = bool(self.values["norm_first"]) and self.values.get("norm") != "none"
        if len(norms) >= wanted:
            self.values["final_norm"] = "pre-norm" if usual else "always"
            for one in norms[wanted:]:
                self.said.append(_missing(one))
        elif norms:
            self.values["final_norm"] = "pre-norm" if usual else "always"
            self.said.append(N_("One of your two stacks ends in a norm; here both do."))
        else:
            self.values["final_norm"] = "never" if usual else "pre-norm"
            if usual:
                self.said.append(
                    N_("Your last block has no norm behind it; here final_norm: never.")
                )

    def _head(self, family: str, shape: Values, rest: list[Layer]) -> None:
        linear = [one for one in rest if one.kind == "linear"]
        n_words = shape["tgt_vocabulary"]
        answers = next((one for one in linear if one.into == self.d_model and one.out == n_words
                        and n_words != self.d_model), None)  # fmt: skip
        if family != "encoder-only":
            shape["output_bias"] = answers.has_bias if answers else False
            self.values["tie_embeddings"] = self.is_tied
            if answers is not None:
                rest.remove(answers)
            elif self.pasted.is_table:  # it lists no tensor twice
                self.values["tie_embeddings"] = True
                self.said.append(
                    N_("No output layer stands in the table; it is taken to share the embedding.")
                )
            elif not self.is_tied:
                self.said.append(
                    N_("No output layer was found; here one answers with {n:,} words ({size:,} "
                       "parameters).", n=n_words, size=n_words * self.d_model)
                )  # fmt: skip
            return
        self._reader(shape, rest, linear, answers)

    def _reader(
        self, shape: Values, rest: list[Layer], linear: Sequence[Layer], answers: Layer | None
    ) -> None:
        """Take what an encoder alone answers with: words, labels, BERT's pooler or its states."""
        has_pooler = {"Pooler", "BertPooler"} & self.pasted.classes
        pooler = next((one for one in linear if "pooler" in one.path or has_pooler), None)
        if answers is not None and len(linear) == 1:
            rest.remove(answers)
            shape |= {"head": "tokens", "output_bias": answers.has_bias}
        elif pooler is not None and len(linear) == 1:
            rest.remove(pooler)
            shape |= {"head": "pooler", "one_vocabulary": True}
        elif linear and linear[0].into == self.d_model and len(linear) <= 2:
            for one in linear:
                rest.remove(one)
            n_labels = linear[-1].out
            hidden = linear[0].out if len(linear) == 2 else 0
            shape |= {"head": "mean", "n_labels": n_labels, "n_hidden": hidden,
                      "one_vocabulary": False, "tgt_vocabulary": n_labels + 4}  # fmt: skip
            self.values["pooling"] = "mean"
            self.said.append(
                N_("Your pooler reads the first token through a tanh; here ReLU reads the mean.")
                if pooler is not None
                else N_("No line says how a text becomes one vector; the mean is taken.")
            )
        else:
            shape |= {"head": "states", "one_vocabulary": True}
        if shape.get("one_vocabulary"):
            shape["tgt_vocabulary"] = shape["src_vocabulary"]


def _sizes_text(known: Architecture) -> str:
    """Return a model as lines of sizes that give it again."""
    config = type(known.model)
    values: dict[str, str] = {"family": known.model.family}
    values |= {
        name: _plain(value)
        for name, value in known.model.model_dump().items()
        if name != "family" and value != _USUAL.get(name, config.model_fields[name].default)
    }
    usual = {one.name: one.default for one in fields(known.shape)}
    always = ("head", "one_vocabulary", "scale_embedding", "has_source", "output_bias")
    for name, value in asdict(known.shape).items():
        if name not in ("pad_id", "mask_id") and (name in always or usual[name] != value):
            values[name] = _plain(value)
    if isinstance(known.shape, TextShape):
        values |= {"src_len": str(known.src_len or 1), "tgt_len": str(known.tgt_len)}
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return "+".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
