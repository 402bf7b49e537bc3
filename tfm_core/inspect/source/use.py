"""How a generated file uses the weights of a run: texts and pictures in, an answer out, as text."""

from __future__ import annotations

from textwrap import dedent

from tfm_core.config import (
    CaptionerConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
    RecurrentConfig,
)
from tfm_core.config.shape import Shape, TextShape
from tfm_core.data.vocabulary import BOS, EOS, MASK, SPECIALS, UNK
from tfm_core.inspect.source.carried import Carried
from tfm_core.inspect.source.texts import listed


def constants(config: ModelConfig, shape: Shape, data: Carried) -> str:
    """Return the lists and numbers that a file carries, as text."""
    parts = []
    if data.mean:
        parts.append(f"MEAN, STD = {list(data.mean)}, {list(data.std)}  # of the training pixels\n")
    if data.classes:
        parts.append(listed("CLASSES", data.classes))
    if data.tgt:
        is_read_only = isinstance(shape, TextShape) and (shape.is_label or shape.mask_id)
        if data.verb == "write":
            parts.append(f"BOS, EOS, UNK = {BOS}, {EOS}, {UNK}\n")
        elif not is_read_only:
            parts.append(f"BOS, EOS = {BOS}, {EOS}\n")
    if data.n_written and "LONGEST" in method(config, shape, data):
        parts.append(f"LONGEST = {data.n_written}  # tokens of an answer, with <eos>\n")
    if data.n_read:
        parts.append(f"CONTEXT = {data.n_read}  # tokens that are read at once, <bos> included\n")
    names = _lists(config, shape, data)
    parts += [listed(name, tokens) for name, tokens in names.items()]
    parts += [data.spelling.lists] if data.spelling is not None and data.spelling.lists else []
    return "".join(parts)


def _lists(config: ModelConfig, shape: Shape, data: Carried) -> dict[str, tuple[str, ...]]:
    """Return the vocabularies by their names in the file."""
    if not data.tgt:
        return {}
    if isinstance(shape, TextShape) and shape.is_label:
        return {"WORDS": data.src, "LABELS": data.tgt[-shape.n_labels :]}
    if not data.src or data.src == data.tgt:
        return {"WORDS": data.tgt}
    return {"SOURCE": data.src, "TARGET": data.tgt}


def functions(data: Carried) -> list[str]:
    """Return the sources of the functions that stand around a model, in order."""
    parts = [PIXELS] if data.mean else []
    if data.spelling is not None:
        parts += [data.spelling.cut, _numbers(data)] if data.spelling.cut else []
        parts += [data.spelling.join]
    return parts


def _numbers(data: Carried) -> str:
    """Return the source of ``numbers``, which turns words into ids."""
    if not data.tries_capitals:
        return _NUMBERS
    return _FORM + (_NUMBERS_OR_UNKNOWN if data.reads_unknown else _NUMBERS_IN_CAPITALS)


_NUMBERS = dedent('''\
    def numbers(words, known):
        """The ids of words; ValueError for one that the model never saw."""
        unknown = [word for word in words if word not in known]
        if unknown or not words:
            raise ValueError(f"the model never learned {', '.join(unknown) or 'an empty text'}")
        return [known.index(word) for word in words]
    ''')
_FORM = dedent(f'''\
    def form(word, known):
        """A word as it is known: as written, else in other capitals, else {SPECIALS[UNK]}."""
        forms = (word, word.lower(), word.capitalize(), word.upper())
        return next((one for one in forms if one in known[{len(SPECIALS)}:]), "{SPECIALS[UNK]}")


    ''')
_NUMBERS_IN_CAPITALS = dedent(f'''\
    def numbers(words, known):
        """The ids of words, in any capitals; ValueError for one that the model never saw."""
        unknown = [word for word in words if form(word, known) == "{SPECIALS[UNK]}"]
        if unknown or not words:
            raise ValueError(f"the model never learned {{', '.join(unknown) or 'an empty text'}}")
        return [known.index(form(word, known)) for word in words]
    ''')
_NUMBERS_OR_UNKNOWN = dedent(f'''\
    def numbers(words, known):
        """The ids of words, in any capitals; {SPECIALS[UNK]} for one that the model never saw."""
        if not words:
            raise ValueError("the model never learned an empty text")
        return [known.index(form(word, known)) for word in words]
    ''')

PIXELS = dedent('''\
    def pixels(picture):
        """Normalised pixels (N, CHANNELS, IMAGE, IMAGE) of a picture: a path, a PIL image, or a
        tensor as ToTensor() gives it, from 0 to 1, or from 0 to 255."""
        if not isinstance(picture, torch.Tensor):
            from PIL import Image  # for files; tensors need torch only

            image = picture if isinstance(picture, Image.Image) else Image.open(picture)
            image = image.convert("L" if CHANNELS == 1 else "RGB").resize((IMAGE, IMAGE))
            values = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
            picture = values.view(IMAGE, IMAGE, CHANNELS).permute(2, 0, 1)
        x = picture.float().reshape(-1, CHANNELS, IMAGE, IMAGE)
        x = x / 255 if x.max() > 1 else x
        mean, std = torch.tensor(MEAN)[:, None, None], torch.tensor(STD)[:, None, None]
        return (x - mean) / std
    ''')


def method(config: ModelConfig, shape: Shape, data: Carried) -> str:
    """Return the source of the method of ``Model`` that answers, indented as it stands there."""
    argument = "picture" if data.mean else "prompt" if data.verb == "write" else "sentence"
    more = ", n=40, temperature=0.0" if data.verb == "write" else ""
    doc, lines = _body(config, shape, data)
    head = [
        "@torch.no_grad()",
        f"def {data.verb}(self, {argument}{more}):",
        f'    """{doc}"""',
        "    self.eval()  # no dropout while it answers",
    ]
    body = [f"    {line}" if line else "" for line in lines]
    return "\n".join(f"    {line}" for line in [*head, *body]) + "\n"


def _body(config: ModelConfig, shape: Shape, data: Carried) -> tuple[str, list[str]]:
    """Return what the method says of itself, and its lines."""
    if data.verb == "classify":
        return "Return a picture's class and its probability; of N pictures a list of both.", [
            "best = self(pixels(picture)).softmax(-1).max(-1)",
            "found = [(CLASSES[i], p) for p, i in zip(*(one.tolist() for one in best))]",
            "is_batch = isinstance(picture, torch.Tensor) and picture.dim() == 4",
            "return found if is_batch else found[0]",
        ]
    if isinstance(config, CaptionerConfig):
        return "Describe a picture: the likeliest word, again and again, until <eos>.", [
            "memory = self.encode(pixels(picture))",
            *_written("self.decode({ids}, memory)", "WORDS"),
        ]
    assert isinstance(shape, TextShape)
    if data.verb == "write":
        return _continued()
    source, target = ("WORDS", "WORDS") if data.src == data.tgt else ("SOURCE", "TARGET")
    if isinstance(config, EncoderOnlyConfig):
        return _at_once(shape, source, target)
    doc = "Write the likeliest token, again and again, until <eos>."
    ids = f"numbers(cut(sentence), {source})"
    if isinstance(config, DecoderOnlyConfig):
        return doc, [
            f"ids, words = {ids} + [SOURCE_WORDS + BOS], []",
            "while words[-1:] != [EOS] and len(words) < LONGEST:",
            "    words.append(int(self(torch.tensor([ids]))[0, -1].argmax()))",
            "    ids.append(SOURCE_WORDS + words[-1])  # target words are counted on",
            *_said(target, "words"),
        ]
    if isinstance(config, RecurrentConfig):
        return doc, [f"src = torch.tensor([{ids}])", *_written("self(src, {ids})", target)]
    assert isinstance(config, EncoderDecoderConfig)
    return doc, [
        f"memory, keep = self.encode(torch.tensor([{ids}]))",
        *_written("self.decode({ids}, memory, keep)", target),
    ]


def _said(words: str, ids: str) -> list[str]:
    """Return the lines that turn ids into a text; words: the name of their vocabulary."""
    return [
        f"said = [{words}[i] for i in {ids} if i not in (PAD, BOS, EOS)]",
        "return joined(said[: LONGEST - 1])",
    ]


def _written(call: str, words: str) -> list[str]:
    """Return the lines that write greedily; call: logits from ``{ids}`` (1, T)."""
    return [
        "ids = [BOS]",
        "while ids[-1] != EOS and len(ids) <= LONGEST:",
        f"    logits = {call.format(ids='torch.tensor([ids])')}[0, -1]",
        "    ids.append(int(logits.argmax()))",
        *_said(words, "ids"),
    ]


def _at_once(shape: TextShape, source: str, target: str) -> tuple[str, list[str]]:
    """Return what an encoder-only model does: it answers in one pass."""
    if shape.is_label:
        return "Return the likeliest label of a sentence, and its probability.", [
            "ids = torch.tensor([numbers(cut(sentence), WORDS)])",
            "shares = self(ids)[0].softmax(-1)  # (N_LABELS,)",
            "return LABELS[int(shares.argmax())], float(shares.max())",
        ]
    if shape.mask_id:
        return "Put the likeliest word into each ___ of a sentence.", [
            "words = cut(sentence)",
            "best = self(torch.tensor([numbers(words, WORDS)]))[0].argmax(-1).tolist()",
            f'filled = [WORDS[i] if word == "{MASK}" else word for word, i in zip(words, best)]',
            "return joined(filled)",
        ]
    return "Write all tokens at once: one into each of LONGEST slots, up to <eos>.", [
        f"ids = numbers(cut(sentence), {source})",
        "slots = [PAD] * (LONGEST - len(ids))",
        "words = self(torch.tensor([ids + slots]))[0, :LONGEST].argmax(-1).tolist()",
        "words = words[: words.index(EOS)] if EOS in words else words",
        *_said(target, "words"),
    ]


def _continued() -> tuple[str, list[str]]:
    """Return what a language model does: it writes on."""
    return "Write on: n tokens, each the likeliest, or drawn at a temperature above 0.", [
        "ids = numbers(cut(prompt), WORDS) if prompt else []",
        "for _ in range(n):",
        "    logits = self(torch.tensor([[BOS, *ids[-(CONTEXT - 1) :]]]))[0, -1]",
        "    logits[[PAD, BOS, UNK]] = -math.inf  # no token of a text",
        "    if temperature:",
        "        ids.append(int(torch.multinomial((logits / temperature).softmax(-1), 1)))",
        "    else:",
        "        ids.append(int(logits.argmax()))",
        "    if ids[-1] == EOS:",
        "        break",
        "return joined([WORDS[i] for i in ids if i != EOS])",
    ]


def asked(data: Carried) -> tuple[str, str]:
    """Return the name of what is given on the command line, and the help on it."""
    if data.mean:
        return "picture", "the path of a picture"
    return (
        ("prompt", "how the text begins")
        if data.verb == "write"
        else ("sentence", "what the model is to read")
    )
