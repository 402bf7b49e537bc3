"""A step of a trace, and the view of the model from which it is made.

The code of a step is real: run on the tensors before it, under the names it uses, it gives the
tensors after it.
"""

from __future__ import annotations

import dis
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.anatomy import Attention, Part, Sublayer, sublayers
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.choices.variants.forms import CAUSALITIES, Causality
from tfm_core.choices.variants.positions import POSITIONS, Position
from tfm_core.choices.variants.record import Named
from tfm_core.inspect.questions import Question, choice_question, number_question
from tfm_core.sentences import N_, Paragraph, joined
from tfm_core.trace.subject import Subject


@dataclass(frozen=True, slots=True, eq=False)
class StepTensor:
    """A tensor of a step.

    name: as the step's code calls it. axes: one name of AXES an axis. words: one an axis, the list
    of token names that stands along it (see ``Subject.words``), or "". label: what it is. numbers:
    those of the first example, (1, …) where there is a batch, of a tensor that has only its shape.
    """

    name: str
    label: str
    value: Tensor
    axes: tuple[str, ...]
    words: tuple[str, ...]
    numbers: Tensor | None = None

    def __post_init__(self) -> None:
        """Hold the axes to the tensor."""
        assert len(self.axes) == len(self.words) == self.value.dim(), (self.name, self.value.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes, in the order of the axes."""
        return tuple(self.value.shape)

    @property
    def looked_at(self) -> Tensor:
        """The tensor whose numbers are shown."""
        return self.value if self.numbers is None else self.numbers

    @property
    def has_values(self) -> bool:
        """Whether there are numbers, and not only a shape."""
        return not self.looked_at.is_meta

    @property
    def gradient(self) -> Tensor | None:
        """The gradient of the loss by the tensor, where ``with_gradients`` captured it."""
        return self.value.grad if self.value.is_leaf or self.value.retains_grad else None


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step. topics name the paragraphs that are true of this model's settings.

    part: the part of the model that it is about.
    name: stands in links and in what leads here, so it stays; a step's number is its place in the
    trace of a model, from 1.
    code runs on ``inputs`` (and ``names``: modules and plain values) and gives ``outputs``.
    block: name of the block's module that the step opens, "" for none.
    extra: more tensors worth a look, which the code does not give. shown: name of the tensor to
    show first; the first of ``outputs`` unless said.
    """

    part: Part
    name: str
    title: str
    topics: tuple[str, ...]
    code: str
    inputs: tuple[StepTensor, ...]
    outputs: tuple[StepTensor, ...]
    question: Question
    block: str = ""
    extra: tuple[StepTensor, ...] = ()
    names: Mapping[str, object] = field(default_factory=dict)
    shown: str = ""

    @property
    def tensors(self) -> tuple[StepTensor, ...]:
        """All tensors of the step, those that it makes first."""
        return (*self.outputs, *self.extra, *self.inputs)

    @property
    def gradient(self) -> Mapping[str, Tensor]:
        """The gradients of the loss by what the step makes, as far as they were captured."""
        by_name = {one.name: one.gradient for one in self.outputs}
        return {name: gradient for name, gradient in by_name.items() if gradient is not None}

    @property
    def hidden_shapes(self) -> frozenset[str]:
        """Names of the tensors whose shape is the question, and of results of the same shape."""
        target = set(self.question.shapes)
        shapes = {one.shape for one in self.tensors if one.name in target}
        made = {one.name for one in (*self.outputs, *self.extra) if one.shape in shapes}
        return frozenset(target | made)

    @property
    def hidden(self) -> frozenset[str]:
        """Names of the tensors whose numbers are not to be seen before the answer."""
        return self.hidden_shapes | frozenset(self.question.values)


def shape_text(sizes: Sequence[int]) -> str:
    """Return sizes as Python writes them: ``(128, 28, 512)``."""
    return f"({', '.join(str(size) for size in sizes)}{',' if len(sizes) == 1 else ''})"


_AS_NAMED: Mapping[str, str] = {}


def _lines(
    key: str, lines: Mapping[str, str], numbers: Mapping[str, object]
) -> Callable[[str], str]:
    """Return what fills a line of a question, or one that all share. lines: see ``ask_number``."""

    def line(label: str) -> str:
        label = lines.get(label, label)
        for name in (f"{key}.{label}", f"shared.{label}"):
            with suppress(KeyError):
                return Paragraph(f"walk_questions/{name}", **numbers)
        raise KeyError(f"{key}.{label}")

    return line


def ask_number(
    key: str,
    answer: int,
    wrong: Mapping[str, int],
    *,
    lines: Mapping[str, str] = _AS_NAMED,
    shapes: tuple[str, ...] = (),
    values: tuple[str, ...] = (),
    **numbers: object,
) -> Question:
    """Ask for a whole number in the words of ``walk_questions/<key>``.

    wrong: the line that says why -> a wrong number. lines: a line -> the one in its place. numbers:
    what fills the lines, besides the answer, ``n``.
    """
    line = _lines(key, lines, {"n": answer, **numbers})
    why = {number: line(label) for label, number in wrong.items()}
    return number_question(
        line("text"),
        answer,
        line("because"),
        wrong=why,
        hint=line("hint"),
        shapes=shapes,
        values=values,
    )


def ask_shape(
    key: str,
    target: StepTensor,
    wrong: Mapping[str, Sequence[int]],
    *,
    lines: Mapping[str, str] = _AS_NAMED,
    has_given: bool = False,
    **numbers: object,
) -> Question:
    """Ask for the shape of a tensor, which is hidden until then; words and lines as above.

    wrong: the line that says why -> a wrong shape; one that is equal to one before it is left out.
    has_given: a line ``given`` says what must be known first.
    """
    line, answer = _lines(key, lines, numbers), shape_text(target.shape)
    why = dict(reversed([(shape_text(shape), line(label)) for label, shape in wrong.items()]))
    why.pop(answer, None)
    options = sorted(
        [answer, *why], key=lambda text: (len(text), sum(map(ord, text)) * 7 % 11, text)
    )
    text = N_("What is the shape of `{name}`?", name=target.name)
    letters = f"({', '.join(target.axes)}{',' if len(target.axes) == 1 else ''})"
    return Question(
        joined(line("given"), text) if has_given else text,
        answer,
        joined(N_("It is {letters} = {answer}.", letters=letters, answer=answer), line("reason")),
        tuple(options),
        why,
        shapes=(target.name,),
    )


def ask_choice(
    key: str,
    right: str,
    others: Sequence[str],
    *,
    lines: Mapping[str, str] = _AS_NAMED,
    topics: tuple[str, ...] = (),
    **numbers: object,
) -> Question:
    """Ask to choose; words and lines as above.

    right: the line of the right option. others: those of options, each with a line of its name and
    ``_why`` that says why it is not that one.
    """
    line = _lines(key, lines, numbers)
    wrong = {line(label): line(f"{label}_why") for label in others if label != right}
    return choice_question(line("text"), line(right), wrong, line("because"), topics=topics)


_MODULES: dict[str, object] = {"math": math, "torch": torch, "F": F}
_OF_BLOCK = {
    "attention": "self_attention",
    "dropout": "dropout",
    "ff": "feed_forward",
    "moe": "feed_forward",
}
"""A name in the code of a step inside a block -> the block's module; elsewhere, the model's own."""
Recorded = tuple[str, str, str]
_OF_ATTENTION: Mapping[str, Recorded] = {
    "q": (".projected_query", N_("query"), "B {tokens} d_q"),
    "k": (".projected_key", N_("key"), "B {tokens} d_kv"),
    "v": (".projected_value", N_("value"), "B {tokens} d_kv"),
    "queries": (".query", N_("queries"), "B H Q:{words} d_head"),
    "keys": (".key", N_("keys"), "B H K:{words} d_head"),
    "values": (".value", N_("values"), "B H K:{words} d_head"),
    "scores": (".scores", N_("scores"), "B H Q:{words} K:{words}"),
    "masked": (".masked_scores", N_("masked scores"), "B H Q:{words} K:{words}"),
    "weights": (".weights", N_("attention weights"), "B H Q:{words} K:{words}"),
    "heads": (".heads", N_("output of each head"), "B H Q:{words} d_head"),
    "merged": (".merged", N_("heads side by side"), "B {tokens} d_q"),
    "output": (".output", N_("the attention's output"), "B {tokens} d_model"),
}
"""A name in the code of a step -> what a self-attention records under it, its label, its axes."""
_TO_LOGITS = ("output.logits", N_("a score per token"), "B T:tgt V:vocabulary")
_OF_MODEL: Mapping[str, Recorded] = {
    "images": ("0", N_("normalised pictures"), "B C Y X"),
    "memory": ("encoder.output", N_("the encoder's output"), "B {memory} d_model"),
    "logits": _TO_LOGITS,
}
"""The same of what is recorded outside of blocks; a number is that of the model's input."""
_OF_READER: Mapping[str, Mapping[str, Recorded]] = {
    "vit": {
        **_OF_MODEL,
        "pooled": ("head.pooled", N_("one vector per picture"), "B d_model"),
        "logits": ("head.logits", N_("a score per class"), "B classes:classes"),
    },
    "pooler": {
        **_OF_MODEL,
        "pooled": ("output.logits", N_("one vector per text"), "B d_model"),
        "src": ("0", N_("source ids"), "B S:src"),
        "tgt": ("1", N_("only its length is used"), "B T:tgt"),
    },
    "recurrent": {
        "src": ("0", N_("source ids"), "B S:src"),
        "tgt": ("1", N_("target ids, from <bos> on"), "B T:tgt"),
        "embedded": ("src_embedding.embedded", N_("source vectors"), "B S:src d_model"),
        "tgt_embedded": ("tgt_embedding.embedded", N_("target vectors"), "B T:tgt d_model"),
        "memory": ("encoder.read", N_("a state per source token"), "B S:src d_model"),
        "last": ("encoder.ends", N_("the encoder's last state"), "B d_model"),
        "scores": (".scores", N_("scores of the pairs"), "B H Q:tgt K:src"),
        "masked": (".masked_scores", N_("masked scores"), "B H Q:tgt K:src"),
        "mask": (".mask", N_("1 = may attend"), "B 1 1 K:src"),
        "weights": (".weights", N_("attention weights"), "B H Q:tgt K:src"),
        "values": (".value", N_("the encoder's states"), "B H K:src d_model"),
        "context": (".heads", N_("context of each target token"), "B H Q:tgt d_model"),
        "states": ("decoder.tops", N_("the decoder's state after each token"), "B T:tgt d_model"),
        "contexts": ("decoder.contexts", N_("context of each token"), "B T:tgt d_model"),
        "x": ("output.answering", N_("state and context"), "B T:tgt d_model"),
        "logits": _TO_LOGITS,
    },
}
"""``Subject.reader`` -> its own, where they differ."""


@lru_cache(maxsize=1024)
def names_in(code: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that code reads before it makes them, and those that it makes, in order."""
    read: dict[str, None] = {}
    made: dict[str, None] = {}
    blocks: list[CodeType] = [compile(code, "<step>", "exec")]
    for block in blocks:
        blocks += [inner for inner in block.co_consts if isinstance(inner, CodeType)]
        for one in dis.get_instructions(block):
            if one.opname == "STORE_NAME":
                made[one.argval] = None
            elif one.opname in ("LOAD_NAME", "LOAD_GLOBAL") and one.argval not in made:
                read[one.argval] = None
    return tuple(read), tuple(made)


@dataclass(frozen=True, slots=True)
class View:
    """A part of a subject, and the opened block in which it lies or which follows it.

    name: of the step to make. axis: of the block's tokens, and their list, as ``"S:src"``.
    """

    subject: Subject
    part: Part
    block: Part
    axis: str
    example: int
    name: str = ""

    @property
    def path(self) -> str:
        """The path of the block."""
        return self.block.path

    @property
    def letter(self) -> str:
        """The name of the axis of the block's tokens."""
        return self.axis.partition(":")[0]

    @property
    def words(self) -> str:
        """The list of the block's tokens."""
        return self.axis.partition(":")[2]

    @property
    def attention(self) -> Attention:
        """The block's self-attention."""
        return next(part for part in self.block if isinstance(part, Attention))

    def sublayer(self, name: str) -> Sublayer:
        """Return a sublayer of the block by the end of its path."""
        return next(part for part in sublayers(self.block) if part.layer.path.endswith(f".{name}"))

    def captured(self, key: str) -> Tensor:
        """Return what was recorded below the block: ``"self_attention.weights"``."""
        return self.subject.cache[f"{self.path}.{key}"]

    def has_captured(self, key: str) -> bool:
        """Return whether that was recorded."""
        return f"{self.path}.{key}" in self.subject.cache

    def module(self, name: str) -> nn.Module:
        """Return a module below the block."""
        return self.subject.model.get_submodule(f"{self.path}.{name}")

    @property
    def order(self) -> Causality | None:
        """Which way an attention's tokens look along what they write; None where they see all."""
        return CAUSALITIES.get(getattr(self.part, "order", ""))

    @property
    def relative(self) -> Position | None:
        """The positions that act in the block's self-attention."""
        relative = self.attention.relative
        return POSITIONS[relative] if relative else None

    @property
    def dropped(self) -> tuple[str, ...]:
        """The topic of a step where dropout acts, if the model drops numbers while it trains."""
        rate = float(getattr(self.subject.config, "dropout", 0.0))
        return ("dropout",) if rate > 0 else ()

    def mistakes(self, kind: type[Named]) -> tuple[str, ...]:
        """Return the topics on the model's mistakes that change a form, such as ``Residual``."""
        names: tuple[str, ...] = getattr(self.subject.config, "mistakes", ())
        return tuple(f"mistake-{name}" for name in names if isinstance(MISTAKES[name].form, kind))

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """B, tokens, H, d_head, d_model."""
        batch, length, d_model = self.captured("self_attention.query_input").shape
        return batch, length, self.attention.n_heads, self.attention.d_head, d_model

    @property
    def d_q(self) -> tuple[str, int]:
        """The width of all heads' queries: as an axis is called, and its size."""
        attention = self.attention
        name = "d_q" if attention.has_own_width else "d_model"
        return name, attention.n_heads * attention.d_head

    def seen(self, name: str, label: str, value: Tensor | str, axes: str) -> StepTensor:
        """Return a tensor of the step. value: or the key under which it was recorded.

        axes: as ``"B H Q:src K:src d_head"``; ``{tokens}`` is the block's axis, ``{words}`` its
        list, ``{memory}`` the axis that a decoder looks back at.
        """
        if isinstance(value, str):
            value = self.subject.cache[value]
        memory = self.subject.memory_axis or self.axis
        axes = axes.format(tokens=self.axis, words=self.words, memory=memory)
        parts = [part.partition(":") for part in axes.split()]
        return StepTensor(
            name, label, value, tuple(p[0] for p in parts), tuple(p[2] for p in parts)
        )

    def recorded(self, name: str) -> StepTensor:
        """Return what is recorded outside of blocks under a name of a step's code."""
        key, label, axes = _OF_READER.get(self.subject.reader, _OF_MODEL)[name]
        if key.isdigit():
            return self.seen(name, label, self.subject.inputs[int(key)], axes)
        key = f"{self.subject.anatomy.attentions[0].path}{key}" if key.startswith(".") else key
        return self.seen(name, label, key, axes)

    def attended(self, name: str) -> StepTensor:
        """Return what the block's self-attention records under a name of a step's code."""
        if name == "mask":
            return self.mask(self.captured("self_attention.mask"))
        recorded, label, axes = _OF_ATTENTION[name]
        if not self.attention.n_kv_heads:
            axes = axes.replace("d_kv", "d_q")
        axes = axes.replace("d_q", self.d_q[0])
        return self.seen(name, label, self.captured(f"self_attention{recorded}"), axes)

    def mask(self, mask: Tensor, words: str = "") -> StepTensor:
        """Return a mask with the axes that it has: 1 where it is the same for all."""
        words = words or self.words
        rows = f"Q:{words}" if mask.size(2) > 1 else "1"
        return self.seen("mask", N_("mask: 1 = may attend"), mask, f"B 1 {rows} K:{words}")

    def target_mask(self, mask: Tensor) -> StepTensor:
        """Return the mask of what a decoder writes."""
        label = N_("target mask: 1 = may attend")
        return self.seen("tgt_mask", label, mask, "B 1 Q:tgt K:tgt")

    def step(
        self,
        title: str,
        topics: Sequence[str],
        code: str,
        question: Question,
        *tensors: StepTensor,
        names: Mapping[str, object] | None = None,
        shown: str = "",
        is_inside: bool = False,
    ) -> Step:
        """Return a step. What goes in and what comes out is read from its code.

        tensors: what the code reads and makes, and what is worth a look besides. is_inside: the
        step opens the block, and its self-attention's tensors need not be given; elsewhere those
        of the model need not. names: modules and values that the code reads, without the usual
        ones, the model's modules and the sizes of the block.
        """
        read, made = names_in(code)
        known = {one.name: one for one in tensors}
        extra = [one for one in tensors if one.name not in {*read, *made}]
        given = dict(names or {})
        for each in {*read, *made} - set(known) - set(given):
            if is_inside and (each == "mask" or each in _OF_ATTENTION):
                known[each] = self.attended(each)
            elif not is_inside and each in _OF_READER.get(self.subject.reader, _OF_MODEL):
                known[each] = self.recorded(each)
        wanted = [each for each in read if each not in known and each not in given]
        given |= {each: value for each in wanted if (value := self._named(each)) is not None}
        return Step(
            self.part,
            self.name,
            title,
            tuple(topics),
            code,
            tuple(known[each] for each in read if each in known),
            tuple(known[each] for each in made if each in known),
            question,
            block=self.path if is_inside else "",
            extra=tuple(extra),
            names=given,
            shown=shown,
        )

    def _named(self, name: str) -> object:
        """Return a module or a size by its name in the code of a step; None for others."""
        if name in _MODULES:
            return _MODULES[name]
        if name in _OF_BLOCK:
            return self.module(_OF_BLOCK[name])
        if name in ("B", "Q", "H", "d_head", "d_model", "d_q", self.letter):
            batch, length, n_heads, d_head, d_model = self.sizes
            sizes = {"B": batch, "Q": length, self.letter: length, "H": n_heads}
            return (sizes | {"d_head": d_head, "d_model": d_model, "d_q": self.d_q[1]})[name]
        return dict(self.subject.model.named_children()).get(name)


def views(subject: Subject, layer: int, example: int) -> Iterator[View]:
    """Iterate over the parts in the order of the forward pass, each behind its children.

    layer: the block of each stack that is opened, from 0; the last one where it has fewer.
    """
    parts = subject.anatomy.parts
    stacks = [number for number, part in enumerate(parts) if part.kind == "stack"]
    for number, part in enumerate(parts):
        stack = parts[next((n for n in stacks if n >= number), stacks[-1])]
        blocks = [child for child in stack.children if child.kind == "block"] or [stack]
        block, axis = blocks[min(layer, len(blocks) - 1)], token_axis(subject, stack)
        behind = [child for child in stack.children if child.kind == "attention"]
        for inner in _from_inside(part, block):
            opened = stack if any(inner is one for one in behind) else block
            yield View(subject, inner, opened, axis, example)


def token_axis(subject: Subject, stack: Part) -> str:
    """Return the axis of a stack's tokens, and their list."""
    if stack.path == "decoder":
        return "T:tgt" if len(stack.inputs) > 1 else "L:sequence"
    if subject.anatomy.of_kind("stem"):
        return "N:tokens"
    return "S:src" if subject.memory_axis else "S:slots"


def _from_inside(part: Part, block: Part) -> Iterator[Part]:
    for child in part.children:
        if child.kind != "block" or child is block:
            yield from _from_inside(child, block)
    yield part


def stack_mask(subject: Subject, stack: str) -> Tensor:
    """Return the mask of a stack: that of its blocks, or what each narrows where windows differ."""
    is_mixed = getattr(subject.config, "window", 0) and getattr(subject.config, "full_every", 0)
    return subject.cache[f"{stack}.mask" if is_mixed else f"{stack}.layers.0.self_attention.mask"]
