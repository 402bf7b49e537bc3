"""The text tasks by name: generated pairs, and a user's own sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import model_validator

from tfm_core.choices.config.base import CrossError, OneOf, set_fact, setting
from tfm_core.choices.config.reads import NamedTaskConfig, task_setting
from tfm_core.choices.variants.tasks import OPERATIONS, is_prime
from tfm_core.sentences import N_, Paragraph, words

AnswerKind = Literal["sequence", "label", "blanks"]
"""What is answered: a sequence up to <eos>, one label, or each hidden word in its place."""
SEQUENCE_FAMILIES = ("encoder-decoder", "encoder-only", "decoder-only", "recurrent")
"""The families that turn one sequence into another."""


@dataclass(frozen=True, slots=True)
class TextTaskFacts:
    """Label and help of a text task, the meaning of ``size``, and the longest sequences.

    ``max_src_len`` and ``max_tgt_len`` take the size and return tokens, without special tokens.
    ``families`` are the model families that can learn it, ``answer`` is what they answer.
    ``unseen`` says what is new in an unseen example; its shares are those of the default settings.
    ``hides``: words of a sentence are hidden; several may be right, and ``size`` is no length.
    ``n_pairs`` takes the size and returns how many pairs there are, None where they never run out.
    ``language`` is that of the words that are read, ``tgt_language`` the one that a translation is
    written in, as in ``ko``; None where sequences are of no language.
    """

    label: str
    help: str
    size_label: str = N_("Longest")
    size_help: str = N_("Longest sequence, in tokens.")
    unseen: str = N_("No example is in two splits.")
    sizes: range = range(2, 513)
    default_size: int = 10
    max_src_len: Callable[[int], int] = lambda n: n
    max_tgt_len: Callable[[int], int] = lambda n: n
    families: tuple[str, ...] = SEQUENCE_FAMILIES
    answer: AnswerKind = "sequence"
    hides: bool = False
    n_pairs: Callable[[int], int] | None = None
    language: str | None = None
    tgt_language: str | None = None


def shares(sizes: Sequence[int], total: int) -> tuple[int, ...]:
    """Return the sizes, or where ``total`` is less than their sum, its parts in their proportions.

    At least one each, but for the last one, which takes what the others leave.
    """
    wanted = sum(sizes)
    if total >= wanted:
        return tuple(sizes)
    parts = [max(1, total * size // wanted) for size in sizes[:-1]]
    return (*parts, total - sum(parts))


def _sequences(n_symbols: int, longest: int) -> int:
    """Return how many sequences of 1 to ``longest`` symbols there are."""
    powers: int = n_symbols**longest
    return n_symbols * (powers - 1) // (n_symbols - 1)


_FACTS: dict[str, dict[str, Any]] = {
    "english-korean": {
        "sizes": range(1, 3),
        "default_size": 1,
        "max_src_len": lambda n: (16, 33)[n - 1],
        "max_tgt_len": lambda n: (17, 34)[n - 1],
        "language": "en",
        "tgt_language": "ko",
    },
    "dates": {
        "sizes": range(1, 7),
        "default_size": 6,
        "max_src_len": lambda n: (18, 18, 18, 22, 22, 33)[n - 1],
        "max_tgt_len": lambda n: 10,
        "language": "en",
    },
    "numbers": {
        "sizes": range(1, 7),
        "default_size": 4,
        "max_src_len": lambda n: (1, 2, 5, 7, 8, 11)[n - 1],
        "max_tgt_len": lambda n: n,
        "n_pairs": lambda n: 10**n,
        "language": "en",
    },
    "copy": {"n_pairs": lambda n: _sequences(16, n)},
    "reverse": {"n_pairs": lambda n: _sequences(16, n)},
    "sort": {"n_pairs": lambda n: _sequences(10, n)},
    "addition": {
        "sizes": range(1, 6),
        "default_size": 2,
        "max_src_len": lambda n: 2 * n + 1,
        "max_tgt_len": lambda n: n + 1,
        "n_pairs": lambda n: 100**n,
    },
    "modular-addition": {
        "sizes": range(5, 114),
        "default_size": 59,
        "max_src_len": lambda n: 2,
        "max_tgt_len": lambda n: 1,
        "families": ("encoder-only",),
        "answer": "label",
        "n_pairs": lambda n: n * n,
    },
    "select": {"n_pairs": lambda n: _sequences(17, n) - n},
    "sort-by-key": {
        "sizes": range(1, 257),
        "default_size": 6,
        "max_src_len": lambda n: 2 * n,
        "n_pairs": lambda n: _sequences(160, n),
    },
    "brackets": {
        "sizes": range(12, 129),
        "default_size": 24,
        "max_tgt_len": lambda n: 1,
        "families": ("encoder-only",),
        "answer": "label",
    },
    "parity": {
        "sizes": range(10, 129),
        "default_size": 16,
        "max_tgt_len": lambda n: 1,
        "families": ("encoder-only",),
        "answer": "label",
        "n_pairs": lambda n: _sequences(2, n),
    },
    "two-sum": {
        "sizes": range(3, 129),
        "default_size": 8,
        "max_tgt_len": lambda n: 1,
        "families": ("encoder-only",),
        "answer": "label",
        "n_pairs": lambda n: _sequences(10, n),
    },
    "sentiment": {
        "sizes": range(2, 5),
        "default_size": 2,
        "max_src_len": lambda n: 8 * n - 1,
        "max_tgt_len": lambda n: 1,
        "families": ("encoder-only",),
        "answer": "label",
        "language": "en",
    },
    "masked-words": {
        "sizes": range(5, 31),
        "default_size": 15,
        "max_src_len": lambda n: 16,
        "max_tgt_len": lambda n: 16,
        "families": ("encoder-only",),
        "answer": "blanks",
        "hides": True,
        "language": "en",
    },
    "span-corruption": {
        "sizes": range(10, 51),
        "default_size": 30,
        "max_src_len": lambda n: 16,
        "max_tgt_len": lambda n: round(16 * n / 100) + max(1, round(round(16 * n / 100) / 2)) + 1,
        "families": ("encoder-decoder", "decoder-only", "recurrent"),
        "hides": True,
        "language": "en",
    },
}
TEXT_TASKS = {
    name: TextTaskFacts(**words(f"choices/tasks/{name}"), **facts) for name, facts in _FACTS.items()
}

_MODULAR = "modular-addition"


class TextTaskConfig(NamedTaskConfig):
    """Sequence to sequence on generated pairs."""

    tasks: ClassVar[dict[str, TextTaskFacts]] = TEXT_TASKS
    kind: Literal["text"] = "text"
    name: Annotated[str, OneOf(TEXT_TASKS)] = task_setting("english-korean")
    size: int = setting("size", 1, ge=1)
    operation: Annotated[str, OneOf(OPERATIONS)] = setting(
        "operation", "add", needs={"name": (_MODULAR,)}
    )
    n_train: int = setting("n_train-pairs", 20000, ge=8, le=500_000, step=1000, advanced=True)
    n_validation: int = setting("n_validation-pairs", 500, ge=8, le=50_000, step=100, advanced=True)
    n_test: int = setting("n_test-pairs", 1000, ge=8, le=50_000, step=100, advanced=True)

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the settings to begin a task with. Raises ConfigError for an unknown one."""
        facts = TEXT_TASKS.get(name)
        return cls.parse({"name": name, **({"size": facts.default_size} if facts else {})})

    @property
    def n_training(self) -> int:
        """Examples of the training split, at most."""
        return self.n_train

    @property
    def facts(self) -> TextTaskFacts:
        """Label, help and lengths of this task."""
        return TEXT_TASKS[self.name]

    @property
    def objective(self) -> str:
        """The name of what is minimised."""
        if not self.facts.hides:
            return "pairs"
        return "blanks" if self.facts.answer == "blanks" else "spans"

    @property
    def calculates(self) -> bool:
        """Whether the operation says what is answered."""
        return self.name == _MODULAR

    @property
    def n_pairs(self) -> int | None:
        """How many pairs there are; None where they never run out."""
        if self.calculates:
            return OPERATIONS[self.operation].n_pairs(self.size)
        return None if self.facts.n_pairs is None else self.facts.n_pairs(self.size)

    @property
    def max_src_len(self) -> int:
        """Longest source in tokens, without special tokens."""
        return self.facts.max_src_len(self.size)

    @property
    def max_tgt_len(self) -> int:
        """Longest target in tokens, without special tokens."""
        return self.facts.max_tgt_len(self.size)

    @model_validator(mode="after")
    def _size_in_range(self) -> Self:
        sizes = self.facts.sizes
        if self.size not in sizes:
            raise CrossError(
                "size",
                "size is {size}; for {label} it must be {lowest} to {highest}.",
                size=self.size,
                label=self.facts.label,
                lowest=sizes[0],
                highest=sizes[-1],
            )
        return self

    @model_validator(mode="after")
    def _can_divide(self) -> Self:
        if self.calculates and OPERATIONS[self.operation].divides and not is_prime(self.size):
            primes = [n for n in self.facts.sizes if is_prime(n)]
            near = sorted(primes, key=lambda n: abs(n - self.size))[:2]
            raise CrossError(
                "size",
                "Division needs a prime modulus; {size} is not prime. Try {near}.",
                size=self.size,
                near=", ".join(map(str, sorted(near))),
            )
        return self

    @model_validator(mode="after")
    def _pairs_for_each_split(self) -> Self:
        facts = self.facts
        if self.size not in facts.sizes or (total := self.n_pairs) is None:
            return self
        if min(shares((self.n_test, self.n_validation, self.n_train), total)) < 1:
            raise CrossError(
                "n_train",
                Paragraph(
                    "settings/no-training-pairs",
                    label=facts.label,
                    size=self.size,
                    total=total,
                    n_test=self.n_test,
                    n_validation=self.n_validation,
                ),
            )
        return self


MAX_TOKENS = 512
"""Of a sentence, without special tokens."""
MAX_WORDS = 100_000
"""Of a vocabulary, special tokens included."""


@dataclass(frozen=True, slots=True)
class OwnTextTaskFacts:
    """Label and help of a task, who learns it, and the set that it begins with.

    unseen: what is new in an unseen example. example: the settings of the set that comes with the
    app.
    """

    label: str
    help: str
    unseen: str
    families: tuple[str, ...]
    answer: Literal["sequence", "label"]
    example: dict[str, Any]
    hides: bool = False


OWN_TEXT_TASKS = {
    "own-pairs": OwnTextTaskFacts(
        families=SEQUENCE_FAMILIES,
        answer="sequence",
        example={"data": "example-pairs", "src_len": 9, "tgt_len": 7, "n_src": 32, "n_tgt": 37},
        **words("choices/tasks/own-pairs"),
    ),
    "own-labels": OwnTextTaskFacts(
        families=("encoder-only",),
        answer="label",
        example={"data": "example-labels", "src_len": 11, "tgt_len": 1, "n_src": 86, "n_tgt": 8},
        **words("choices/tasks/own-labels"),
    ),
}


def set_id(default: Any = ...) -> Any:
    """Return the field that names a set; links and files carry it, no control shows it."""
    return set_fact(N_("Data"), default=default, pattern=r"^([0-9a-f]{20}|example-[a-z]{3,20})?$")


class OwnTextTaskConfig(NamedTaskConfig):
    """A user's sentences: pairs, or with labels.

    A configuration opens where the set is missing. Lengths and sizes are those of the set, which
    never changes; ``data.user_data.task`` refuses a configuration with others.
    """

    tasks: ClassVar[dict[str, OwnTextTaskFacts]] = OWN_TEXT_TASKS
    kind: Literal["own"] = "own"
    name: Annotated[str, OneOf(OWN_TEXT_TASKS)] = task_setting("own-pairs")
    data: str = set_id()
    src_len: int = set_fact(N_("Longest source"), ge=1, le=MAX_TOKENS)
    tgt_len: int = set_fact(N_("Longest target"), ge=1, le=MAX_TOKENS)
    n_src: int = set_fact(N_("Source vocabulary"), ge=5, le=MAX_WORDS)
    n_tgt: int = set_fact(N_("Target vocabulary"), ge=5, le=MAX_WORDS)

    @model_validator(mode="before")
    @classmethod
    def _begins_with_the_example(cls, values: Any) -> Any:
        """Take the set that comes with the app where none is named."""
        if not isinstance(values, dict) or values.get("data"):
            return values
        facts = OWN_TEXT_TASKS.get(str(values.get("name", "own-pairs")))
        return values if facts is None else {**values, **facts.example}

    @property
    def facts(self) -> OwnTextTaskFacts:
        """Label and help of this task, and what is answered."""
        return OWN_TEXT_TASKS[self.name]

    @property
    def objective(self) -> str:
        """Answers need not follow from what is read."""
        return "own"

    @property
    def max_src_len(self) -> int:
        """Longest source in tokens, without special tokens."""
        return self.src_len

    @property
    def max_tgt_len(self) -> int:
        """Longest target in tokens, without special tokens."""
        return self.tgt_len
