"""A task's way to cut texts as a tokenizer.json, which the library ``tokenizers`` runs.

Each rule of a ``Spelling`` is a chain of normalizers and a way to split; the ids are those of the
task. What needs more than that is left out: other capitals of an unknown word.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfm_core.choices.variants.tasks import CLOSING, HIDDEN, OPENING
from tfm_core.data.text.task import Spelling
from tfm_core.data.user_data.tokens import SPACE
from tfm_core.data.vocabulary import SPECIALS, UNK

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ANSWER = "▸"
"""In front of a token of the answer, where source and answer have one tokenizer."""

_BEGIN, _UNKNOWN = SPECIALS[1], SPECIALS[UNK]
_N_SPANS = 10
_ONE = r"[\s\S]"
_SIGNS = r"[\s.,!?;]+"
_FIRST_HIDDEN = r"\A(?:(?!_{2})[\s\S])*?\K_{2,}"

# as ``variants.units`` has them, whose patterns read an outline: \w with marks apart
_LETTER, _MARK, _JOINER = r"[\p{L}\p{N}_]", r"[\p{M}\x{1f3fb}-\x{1f3ff}]", r"[\x{200c}\x{200d}]"
_LETTERS = rf"{_LETTER}(?:{_LETTER}|{_MARK}|{_JOINER})*"
_OTHER = r"[^\p{L}\p{N}_\s▁]"
_SIGN = rf"{_OTHER}{_MARK}*(?:{_JOINER}{_OTHER}{_MARK}*)*"
_WORD = rf"{_LETTERS}(?:['’\-]{_LETTERS})*|{_SIGN}|▁"
_PIECE = rf"▁?{_LETTERS}|▁?{_SIGN}"
_RUNNING = rf" ?{_LETTER}(?:{_LETTER}|{_MARK}|{_JOINER}){{0,63}}| ?{_SIGN}| +(?= )|\s|▁"


def one_text(tokens: Sequence[str], spelling: Spelling) -> Tokenizer:
    """Return the tokenizer of texts that a language model reads and writes.

    tokens: in the order of their ids. Raises ValueError where the merges of its pieces lead to
    tokens that have no id.
    """
    from tokenizers import processors

    tokenizer = _tokenizer(tokens, spelling)
    _CUTS[spelling.cut](tokenizer, spelling)
    tokenizer.post_processor = processors.TemplateProcessing(
        f"{_BEGIN} $A", None, [(_BEGIN, tokens.index(_BEGIN))]
    )
    _JOINS[spelling.join](tokenizer, spelling)
    return _with_specials(tokenizer, SPECIALS)


def both(src: Sequence[str], tgt: Sequence[str], spelling: Spelling) -> tuple[Tokenizer, str]:
    """Return the tokenizer of a model that goes on where the source ends, and the mark of answers.

    The words of the answer have ids behind those of the source, and a mark in front.
    """
    from tokenizers import processors

    marks = (ANSWER * n for n in itertools.count(1))
    mark = next(one for one in marks if not any(one in token for token in (*src, *tgt)))
    tokens = [*src, *(mark + token for token in tgt)]
    tokenizer = _tokenizer(tokens, spelling)
    _CUTS[spelling.cut](tokenizer, spelling)
    begin = mark + _BEGIN
    tokenizer.post_processor = processors.TemplateProcessing(
        f"$A {begin}", None, [(begin, tokens.index(begin))]
    )
    _JOINS[spelling.join](tokenizer, spelling, [_replaced(mark, "", decodes=True)])
    return _with_specials(tokenizer, [*SPECIALS, *(mark + one for one in SPECIALS)]), mark


def _tokenizer(tokens: Sequence[str], spelling: Spelling) -> Tokenizer:
    from tokenizers import Tokenizer, models

    ids = {token: number for number, token in enumerate(tokens)}
    if not spelling.merges:
        return Tokenizer(models.WordLevel(ids, unk_token=_UNKNOWN))
    space = " " if spelling.cut == "parts" else SPACE  # in a running text pieces hold spaces
    merges = [one.partition(" ") for one in spelling.merges]
    pairs = [(one.replace(SPACE, space), other.replace(SPACE, space)) for one, _, other in merges]
    try:
        return Tokenizer(models.BPE(ids, pairs, unk_token=_UNKNOWN))
    except Exception as error:  # the library raises nothing more special
        raise ValueError("A merge leads to a piece that has no id.") from error


def _with_specials(tokenizer: Tokenizer, specials: Sequence[str]) -> Tokenizer:
    from tokenizers import AddedToken

    tokenizer.add_special_tokens([AddedToken(one, normalized=False) for one in specials])
    return tokenizer


def _replaced(pattern: str, by: str, *, decodes: bool = False) -> Any:
    from tokenizers import Regex, decoders, normalizers

    return (decoders if decodes else normalizers).Replace(Regex(pattern), by)


def _cutting(
    rules: Callable[[Spelling], list[Any]], pattern: str, *, keeps: bool = True
) -> Callable[[Tokenizer, Spelling], None]:
    """Return what gives a tokenizer its rules. keeps: whether tokens are what the pattern finds."""

    def give(tokenizer: Tokenizer, spelling: Spelling) -> None:
        from tokenizers import Regex, normalizers, pre_tokenizers

        steps = [_replaced(*one) if isinstance(one, tuple) else one() for one in rules(spelling)]
        tokenizer.normalizer = normalizers.Sequence(steps)
        found = pattern if spelling.has_breaks is False else f"{pattern}|\\n"
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(found), "removed", invert=keeps)

    return give


def _lower() -> Any:
    from tokenizers import normalizers

    return normalizers.Lowercase()


def _composed() -> Any:
    from tokenizers import normalizers

    return normalizers.NFC()


_PLAIN: list[Any] = [(HIDDEN.pattern.encode().decode("unicode_escape"), ""), _composed]
_LINES: list[Any] = [(r"\r\n?", "\n")]
_SQUASHED: list[Any] = [(r"\s+", " "), (r"\A | \z", "")]


def _dates(spelling: Spelling) -> list[Any]:
    names = [(rf"(?<![a-z]){name.lower()}(?![A-Za-z])", name) for name in spelling.names]
    return [*_SQUASHED, (r"\.\z", ""), _lower, *names]


def _spans(spelling: Spelling) -> list[Any]:
    return [_lower, *((_FIRST_HIDDEN, f"<extra_id_{n}>") for n in range(_N_SPANS))]


def _pieces(spelling: Spelling) -> list[Any]:
    return [*_PLAIN, (SPACE, " "), *_SQUASHED, (r"\A(?=[\s\S])", " "), (" ", SPACE)]


_CUTS: Mapping[str, Callable[[Tokenizer, Spelling], None]] = {
    "words": _cutting(lambda one: [_lower], _SIGNS, keeps=False),
    "spans": _cutting(_spans, _SIGNS, keeps=False),
    "numbers": _cutting(lambda one: [_lower], r"[-\s,.]+", keeps=False),
    "symbols": _cutting(lambda one: [_lower, (r"[\s,;]+", "")], _ONE),
    "sum": _cutting(lambda one: [(r"\s+", ""), (r"=\z", "")], _ONE),
    "dates": _cutting(_dates, _ONE),
    "letters": _cutting(lambda one: [*_PLAIN, *_LINES], _ONE),
    "signs": _cutting(lambda one: [*_PLAIN, *_SQUASHED], _ONE),
    "spaces": _cutting(lambda one: _PLAIN, r"\s+", keeps=False),
    "running": _cutting(lambda one: [*_PLAIN, *_LINES], _WORD),
    "pieces": _cutting(_pieces, _PIECE),
    "parts": _cutting(lambda one: [*_PLAIN, *_LINES], _RUNNING),
}
"""By the name of a rule of ``Spelling``."""


def _joining(
    rules: Callable[[Spelling], list[tuple[str, str]]], *, spaced: bool = True
) -> Callable[..., None]:
    """Return what gives a tokenizer its way to write tokens. rules: of the whole text."""

    def give(tokenizer: Tokenizer, spelling: Spelling, first: Sequence[Any] = ()) -> None:
        from tokenizers import decoders

        apart = [_replaced(r"\A", " ", decodes=True)] if spaced else []
        rest = [_replaced(*one, decodes=True) for one in rules(spelling)]
        begin = [decoders.Strip(" ", 1, 0)] if spaced else []
        tokenizer.decoder = decoders.Sequence([*first, *apart, decoders.Fuse(), *begin, *rest])

    return give


def _suffixed(spelling: Spelling) -> list[tuple[str, str]]:
    joined = "|".join(spelling.suffixes)
    rules = [(rf" (?=(?:{joined})(?: |\z))", "")] if joined else []
    return [*rules, (rf"(?<={spelling.ending})\z", ".")] if spelling.ending else rules


def _running(spelling: Spelling) -> list[tuple[str, str]]:
    closing, opening = CLOSING.replace("[", r"\["), OPENING.replace("[", r"\[")
    signs = [(f" (?=[{closing}])", ""), (f"(?<=[{opening}]) ", "")]
    return [(r" *\n *", "\n"), *signs, (r"„[^„“\n]*\K “", "“"), (r"(?<![^\s(\[{])“ ", "“")]


_JOINS: Mapping[str, Callable[..., None]] = {
    "plain": _joining(lambda one: [], spaced=False),
    "spaced": _joining(lambda one: []),
    "suffixed": _joining(_suffixed),
    "running": _joining(_running),
    "united": _joining(lambda one: [(SPACE, " "), (r"\A | \z", "")], spaced=False),
}
