"""The model that has the sizes of a text: those of a notebook, a call or a config.json.

Nothing of the text is run.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from tfm_core.choices.config.base import ConfigError
from tfm_core.choices.config.model import MODEL_CONFIGS, built
from tfm_core.choices.config.shape import CaptionShape, Shape, TextShape
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.facts.architectures import ARCHITECTURES, SHAPES, Architecture
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.sentences import N_, Sentence, StudentError

MAX_CHARACTERS = 10_000

_KNOWN: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
_BY_THEIRS = {name: ours for ours, names in _KNOWN["theirs"].items() for name in names}


Unread = tuple[int, str, str]
"""A line that was not understood, from 1, its text, and why."""


@dataclass(slots=True)
class GivenSizes:
    """The sizes and the call of a text.

    sizes: by our names of settings; names: all that it assigns, by its own; call: the class that it
    calls, or "".
    """

    sizes: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    call: str = ""
    n_lines: int = 0
    unread: list[Unread] = field(default_factory=list)


_CALL = re.compile(
    r"(?:\w{1,40}\s*=\s*)?(?:torch\.)?(?P<name>(?:nn\.)?[A-Za-z_]\w{0,80})\((?P<inside>[^()]*)\)$"
)
_PAIR = re.compile(
    r"[\"']?([A-Za-z_][\w.]*)[\"']?\s*[:=]\s*([\"']?)([^\s,;|{}()]+(?:\s*//\s*\w+)?)\2"
)
_DEFAULTS = re.compile(r"def __init__\(\s*self\s*,?(.*)\)\s*(?:->.*)?:?$")
_ANNOTATION = re.compile(r":\s*[\w.\[\]| ]+?\s*(?=[=,]|$)")
_CODE = re.compile(r"(class|def|return|import|from|for|if|while|with|super|self|print|@)\b|@")
CODE = N_(
    "This is code. Write a call of its class, such as Encoder(3, 16, 4, 2), or open the module "
    "itself: tfm_core.look(model, …).open()."
)


def parse_sizes(text: str) -> GivenSizes:
    """Return the sizes of a text. Raises StudentError for a text that is too long."""
    if len(text) > MAX_CHARACTERS:
        raise StudentError(
            "The text has {n:,} characters; the limit is {most:,}.",
            n=len(text),
            most=MAX_CHARACTERS,
        )
    given = GivenSizes()
    for number, line in _statements(text):
        given.n_lines += 1
        why = _take(line, given)
        if why:
            given.unread.append((number, line[:80], why))
    return given


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers, those of an open bracket as one, without comments."""
    first, statement = 1, ""
    for number, line in enumerate(text.splitlines(), 1):
        first = number if not statement else first
        statement = f"{statement} {line.partition('#')[0].strip()}".strip().rstrip(";")
        if statement and statement.count("(") <= statement.count(")"):
            yield first, statement
            statement = ""
    if statement:
        yield first, statement


def _take(line: str, given: GivenSizes) -> str:
    """Take in a line; return why it was not understood, or ""."""
    if line.strip("{}, ") == "":  # the brackets of a config.json
        return ""
    if (defaults := _DEFAULTS.match(line)) is not None:
        return _take_pairs(_ANNOTATION.sub("", defaults[1]), given)
    if _CODE.match(line) is not None:
        return CODE
    call = _CALL.match(line)
    if call is not None:
        return _take_call(call["name"], call["inside"], given)
    return _take_pairs(line, given)


def _take_call(name: str, inside: str, given: GivenSizes) -> str:
    """Take in a call such as ``Encoder(3, 16, 4, 2)``."""
    plain = [one.strip() for one in inside.split(",") if one.strip() and "=" not in one]
    names: Sequence[str] = _KNOWN["calls"].get(name, ())
    by_name = [one for one in plain if _canonical(one)]  # of a size that is set above
    if len(plain) == len(by_name) > len(names):
        plain = []
    if len(plain) > len(names):
        if not names:
            return N_("Name the numbers of “{layer}”: d_model = …", layer=name[:40])
        return N_("“{layer}” takes at most {n} numbers without a name.", layer=name, n=len(names))
    given.call = given.call or name
    for size, value in zip(names, plain, strict=False):
        given.sizes[size] = _value(value, given)
    return _take_pairs(inside, given) if "=" in inside else ""


def _take_pairs(line: str, given: GivenSizes) -> str:
    found = _PAIR.findall(line)
    if _canonical(line.partition("=")[0].strip()) == "":
        return ""  # such as the shape of a picture, whatever it is
    if not found or "(" in line:
        return N_("This is neither a size nor a call with sizes.")
    unknown = []
    for name, _quote, value in found:
        ours = _canonical(name)
        given.names[name] = _value(value, given)
        if ours is None:
            unknown.append(name)
        elif ours:
            given.sizes[ours] = _value(value, given)
    if unknown:
        return N_("Unknown: {names}.", names=", ".join(one[:30] for one in unknown[:5]))
    return ""


def _canonical(name: str) -> str | None:
    """Return our name of a size; "" for a size without effect, None for an unknown name."""
    name = name.rpartition(".")[2]
    if name in _KNOWN["exact"]:
        return name
    short = re.sub(r"[\W_]", "", name.lower())
    return "" if short in _KNOWN["skipped"] else _BY_THEIRS.get(short)


def _value(text: str, given: GivenSizes) -> str:
    """Return a value as our settings read it: no quotes, no ``_`` in numbers, no names, no //."""
    text = text.strip().strip("\"'")[:60]
    if re.fullmatch(r"\d[\d_]*", text):
        return text.replace("_", "")
    if "//" in text:
        whole, part = (_value(one, given) for one in text.split("//", 1))
        if whole.isdecimal() and part.isdecimal() and int(part):
            return str(int(whole) // int(part))
    return given.names.get(text, given.sizes.get(_canonical(text) or "", text))


Values = dict[str, Any]
WORDS, LEN, PIXELS = 100, 10, 28
MAX_WORDS, MAX_LEN = 1_000_000, 8_192
_USUAL: Mapping[str, object] = {"norm_first": False, "activation": "relu", "dropout": 0.0}
"""What a notebook's model is where it does not say: that of 2017."""
_REGIONS: Mapping[str, int] = {
    "image_size": 6,
    "channels": 2048,
    "tgt_vocabulary": WORDS,
    "tgt_len": MAX_LEN,
}
"""The same of what a captioner reads: 36 regions of 2,048 features."""
_PYTORCH: Mapping[str, object] = {
    "family": "encoder-decoder",
    "d_model": 512,
    "n_heads": 8,
    "n_encoder_layers": 6,
    "n_decoder_layers": 6,
    "d_ff": 2048,
    "dropout": 0.1,
    "activation": "relu",
    "norm_first": False,
    "final_norm": "always",
}
"""What ``nn.Transformer`` is where its call does not say."""
_OF_OTHERS = (
    "family",
    "n_layers",
    "d_head",
    "src_len",
    "tgt_len",
    "src_max_len",
    "tgt_max_len",
    "n_patches",
    "mlp_ratio",
    "text_position",
)
"""Sizes that others of the model stand for, or that change nothing but lengths."""
_FAMILIES = {
    "encoder-only": N_("encoder"),
    "decoder-only": N_("decoder"),
    "encoder-decoder": N_("encoder-decoder"),
    "vit": N_("Vision Transformer"),
    "captioner": N_("captioner of regions"),
}
_OF_CLASS = {
    "Encoder": "text-encoder",
    "SimpleTransformer": "text-simple",
    "SentimentAnalyzer": "text-sentiment",
    "ImageCaptioning": "text-captions",
    "EncoderDecoderTransformer": "text-korean",
    "My_Transformer": "text-synthetic",
    "Transformer": "text-transformer",
    "MyVIT": "text-vit",
}


@dataclass(frozen=True, slots=True)
class YourModel:
    """A model built with the sizes of a text.

    assumed: what the count rests on though the text does not say it, or has of another kind. sizes:
    a short text that gives the same model again, for a link.
    """

    architecture: Architecture
    assumed: tuple[Sentence, ...]
    unread: tuple[Unread, ...]
    n_lines: int
    sizes: str


@lru_cache(maxsize=64)
def your_model(text: str) -> YourModel:
    """Return the model of a text. Raises StudentError where it says none."""
    given = parse_sizes(text)
    values, shape = _settings(given)
    config, found = _made(values, shape)
    lengths = _lengths(given, found, getattr(config, "max_len", MAX_LEN))
    known = Architecture("notebook", N_("Your notebook"), config, found, *lengths, batch=2)
    assumed = tuple(_assumed(given, known))
    return YourModel(known, assumed, tuple(given.unread), given.n_lines, _sizes_text(known))


def _assumed(given: GivenSizes, known: Architecture) -> Iterator[Sentence]:
    if "family" not in given.sizes and given.call != "nn.Transformer":
        if not given.call:
            yield N_(
                "No class is named, so a standard {family} of these sizes is counted.",
                family=_FAMILIES[known.model.family],
            )
        elif given.call not in _OF_CLASS:
            yield N_(
                "The class {name} is unknown, so a standard {family} is counted.",
                name=given.call[:40],
                family=_FAMILIES[known.model.family],
            )
    if given.call == "Encoder":
        yield N_(
            "Your class has no embedding, but {n:,} of these parameters belong to one.",
            n=getattr(known.shape, "src_vocabulary", 0) * built(known.model).d_model,
        )
    taken = {*known.model.model_dump(), *asdict(known.shape), *_OF_OTHERS}
    if left := [name for name in given.sizes if name not in taken]:
        yield N_("Not used: {names}.", names=", ".join(left))
    is_sinusoidal = getattr(known.model, "position", "") == "sinusoidal"
    if "max_len" in given.sizes and is_sinusoidal and given.call not in _OF_CLASS:
        yield N_(
            "Positions count as sinusoidal, without parameters. If yours are learned, write "
            "position = learned."
        )


def _made(values: Values, shape: Values) -> tuple[Any, Shape]:
    family = str(values.pop("family", "encoder-only"))
    if family not in _FAMILIES:
        known = [name for name in MODEL_CONFIGS if name in _FAMILIES]
        raise StudentError(
            "family is {family}; choose from {known}.", family=family[:40], known=", ".join(known)
        )
    config = MODEL_CONFIGS[family]
    used = {name: value for name, value in values.items() if name in config.model_fields}
    try:
        made = config.parse(used)
    except ConfigError as error:
        raise StudentError(error.sentences[0]) from None
    kind = SHAPES.get(family, TextShape)
    names = {one.name for one in fields(kind)}
    sizes = {name: value for name, value in shape.items() if name in names}
    found: Shape = kind(**sizes)
    parameter_table(made, found)  # refuses patches that do not divide the picture
    return made, found


def _lengths(given: GivenSizes, shape: Shape, longest: int) -> tuple[int, int]:
    if isinstance(shape, CaptionShape):
        return 0, min(LEN, shape.tgt_len)
    if not isinstance(shape, TextShape):
        return 0, 0
    src, tgt = (_whole(given.sizes, name, LEN, 1, MAX_LEN) for name in ("src_len", "tgt_len"))
    src, tgt = min(src, longest), min(tgt, longest)
    if not shape.has_source:
        return 0, tgt
    return src, 1 if shape.is_label else tgt if shape.head == "tokens" else src


def _settings(given: GivenSizes) -> tuple[Values, Values]:
    """Return the settings of a model, and its shape."""
    sizes = given.sizes
    if any(name.startswith("MY_") for name in given.names) and not given.call:
        given.call = "MyVIT"
    _derive(sizes)
    known = ARCHITECTURES.get(_OF_CLASS.get(given.call, ""))
    if not sizes and known is None:
        if any(why == CODE for _number, _text, why in given.unread):
            raise StudentError(CODE)
        raise StudentError(
            "No model was found. Give sizes such as d_model = 512 or a call such as "
            "Encoder(3, 16, 4, 2), or open the module itself: tfm_core.look(model, …)."
        )
    shape: Values = {"scale_embedding": False}
    if given.call == "nn.Transformer":
        values = {**_PYTORCH, **_named_in(sizes)}
    elif known is not None and "family" not in sizes:
        values = {**known.model.model_dump(), **_named_in(sizes)}
        shape = asdict(known.shape)
    else:
        values = {**_USUAL, "family": _family_of(given), **_named_in(sizes)}
    if values["family"] == "encoder-decoder" and "n_layers" in sizes:  # of each stack
        both = ("n_encoder_layers", "n_decoder_layers")
        values |= {name: sizes["n_layers"] for name in both if name not in sizes}
    if values["family"] == "captioner" and "src_vocabulary" in sizes:  # it writes words alone
        sizes["tgt_vocabulary"] = sizes.pop("src_vocabulary")
    return values, _shape(values["family"], sizes, shape)


def _derive(sizes: dict[str, str]) -> None:
    """Add the sizes that others stand for: largest lengths, patches along a side, a factor."""
    lengths = [sizes.get(name, "") for name in ("src_max_len", "tgt_max_len")]
    if all(one.isdecimal() for one in lengths):
        longest = str(max(map(int, lengths)))
        sizes |= {"src_len": lengths[0], "tgt_len": lengths[1], "max_len": longest}
        sizes.setdefault("position", "learned")  # a table as long as the longest text
    n_patches, side = sizes.get("n_patches", ""), sizes.get("image_size", str(PIXELS))
    if n_patches.isdecimal() and side.isdecimal() and int(n_patches):
        sizes.setdefault("patch_size", str(int(side) // int(n_patches)))
    factor, width = sizes.get("mlp_ratio", ""), sizes.get("d_model", "")
    if factor.isdecimal() and width.isdecimal():
        sizes.setdefault("d_ff", str(int(factor) * int(width)))


def _family_of(given: GivenSizes) -> str:
    sizes, name = given.sizes, given.call.lower()
    if "patch_size" in sizes or "vit" in name:
        return "vit"
    both = {"n_decoder_layers", "n_encoder_layers", "tgt_vocabulary"} & sizes.keys()
    if both or name == "transformer":
        return "encoder-decoder"
    return "decoder-only" if "gpt" in name else "encoder-only"


def _shape(family: str, sizes: Mapping[str, str], usual: Values) -> Values:
    if family in ("vit", "captioner"):
        return _shape_of_pictures(family, sizes, usual)
    shape = {"src_vocabulary": WORDS, "tgt_vocabulary": 0, **usual}
    src = _whole(sizes, "src_vocabulary", shape["src_vocabulary"], 1, MAX_WORDS)
    tgt = _whole(sizes, "tgt_vocabulary", shape["tgt_vocabulary"] or src, 1, MAX_WORDS)
    if shape.get("one_vocabulary") or family == "decoder-only":
        src = tgt = src if "src_vocabulary" in sizes else tgt
    shape |= {"src_vocabulary": src, "tgt_vocabulary": tgt}
    if family == "decoder-only":
        shape |= {"one_vocabulary": True, "has_source": False}
    elif family == "encoder-only" and "head" not in sizes and "head" not in usual:
        shape |= {"one_vocabulary": True, "head": "states", "tgt_vocabulary": src}
    for name in ("n_hidden", "n_labels", "n_segments"):
        shape[name] = _whole(sizes, name, shape.get(name, 0), 0, MAX_WORDS)
    for name in ("one_vocabulary", "output_bias", "scale_embedding", "has_source"):
        if name in sizes:
            shape[name] = _FLAGS.get(sizes[name].lower(), True)
    if "head" in sizes:
        shape["head"] = sizes["head"]
    return shape


def _shape_of_pictures(family: str, sizes: Mapping[str, str], usual: Values) -> Values:
    if family == "vit":
        shape = {"image_size": PIXELS, "channels": 1, "n_classes": 10, **usual}
        limits = {"image_size": 4_096, "channels": 256, "n_classes": MAX_WORDS}
    else:
        shape = {**_REGIONS, **usual, "has_regions": True}
        limits = {"image_size": 64, "channels": 16_384}
        limits |= {"tgt_len": MAX_LEN, "tgt_vocabulary": MAX_WORDS}
    return shape | {
        name: _whole(sizes, name, shape[name], 1, most) for name, most in limits.items()
    }


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
        if name not in ("pad_id", "mask_id", "has_regions") and (
            name in always or usual[name] != value
        ):
            values[name] = _plain(value)
    if isinstance(known.shape, TextShape):
        values |= {"src_len": str(known.src_len or 1), "tgt_len": str(known.tgt_len)}
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return "+".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _whole(sizes: Mapping[str, str], name: str, otherwise: int, low: int, high: int) -> int:
    """Return a size as a number. Raises StudentError for what is none."""
    text = sizes.get(name)
    if text is None:
        return otherwise
    if not text.isdecimal() or not low <= int(text[:12]) <= high:
        raise StudentError(
            "{name} is {text}; it must be a whole number from {low:,} to {high:,}.",
            name=name,
            text=text[:20],
            low=low,
            high=high,
        )
    return int(text)


_FLAGS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


def _named_in(sizes: Mapping[str, str]) -> Values:
    """Return the settings that a text names, as they stand there; the model refuses wrong ones."""
    names = {name for config in MODEL_CONFIGS.values() for name in config.model_fields}
    given: Values = {name: text for name, text in sizes.items() if name in names}
    for name in ("norm_first", "bias", "projection_bias", "tie_embeddings"):
        if name in given:
            given[name] = _FLAGS.get(str(given[name]).lower(), given[name])
    if "mistakes" in given:
        given["mistakes"] = str(given["mistakes"]).replace("+", ",")
    if "activation" in given:
        given["activation"] = _activation_of(str(given["activation"])) or given["activation"]
    if "d_head" in sizes and "d_model" in given and "n_heads" not in given:
        d_head = _whole(sizes, "d_head", 1, 1, 16_384)
        given["n_heads"] = int(given["d_model"]) // d_head if given["d_model"].isdecimal() else 1
    return given


def _activation_of(layer: str) -> str | None:
    """Return our activation of a class or a name of one."""
    name = layer.lower().replace("_", "")
    if name in ACTIVATIONS or layer in ACTIVATIONS:
        return layer if layer in ACTIVATIONS else name
    if "newgelu" in name or "gelunew" in name or "tanh" in name:
        return "gelu_tanh"
    return next((one for one in ("gelu", "relu", "silu") if one in name), None)
