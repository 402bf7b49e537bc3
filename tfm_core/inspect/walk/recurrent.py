"""The steps of a recurrent model with attention."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tfm_core.choices.variants.alignment_scores import ALIGNMENT_SCORES, AlignmentScore
from tfm_core.choices.variants.cells import CELLS, Cell
from tfm_core.inspect.questions import Question, number_question
from tfm_core.inspect.walk import answer, attention
from tfm_core.inspect.walk.block_view import BlockView
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import WalkStep, seen, shape_question
from tfm_core.layers.recurrent import EncodedSource
from tfm_core.models.recurrent import State
from tfm_core.sentences import N_, Paragraph

_LOOK = "decoder.cross_attention"


def embedding(view: BlockView) -> WalkStep:
    """A row of a table for each id, of source and target."""
    subject = view.subject
    src, tgt = subject.inputs
    tables = {name: subject.model.get_submodule(name) for name in _TABLES}
    embedded, tgt_embedded = (subject.cache[f"{name}.embedded"] for name in _TABLES)
    n_words, d = subject.anatomy.sizes["src_words"], embedded.size(-1)
    return view.step(
        "embedding", N_("Embedding"), ("embedding", "embedding-recurrent"),
        "embedded = src_embedding(src)\ntgt_embedded = tgt_embedding(tgt)",
        number_question(
            N_(
                "How many numbers does the table of {n_words:,} source tokens hold, with "
                "d_model {d}?",
                n_words=n_words,
                d=d
            ), n_words * d, N_(
                "{n_words:,} rows of {d} = {n_words_2:,}.",
                n_words=n_words,
                d=d,
                n_words_2=n_words * d
            ),
            wrong={n_words + d: N_("Every token has its own row.")},
            hint=N_("Every token has a row of d_model numbers.")
        ),
        seen("src", N_("source ids"), src, "B S:src"),
        seen("tgt", N_("target ids, from <bos> on"), tgt, "B T:tgt"),
        seen("embedded", N_("source vectors"), embedded, "B S:src d_model"),
        seen("tgt_embedded", N_("target vectors"), tgt_embedded, "B T:tgt d_model"),
        names=tables,
    )  # fmt: skip


_TABLES = ("src_embedding", "tgt_embedding")


def reading(view: BlockView) -> WalkStep:
    """The source, token by token, from one end or from both."""
    subject = view.subject
    embedded, memory = subject.cache["src_embedding.embedded"], subject.cache["encoder.read"]
    batch, length, d = memory.shape
    ended = seen("last", N_("the encoder's last state"), subject.cache["encoder.ends"], "B d_model")
    how = "reading-both" if len(view.part.children) > 1 else "reading-onward"
    return view.step(
        "encoder", N_("The encoder reads"), ("reading", how),
        "memory, last = encoder(embedded, keep)",
        shape_question(
            ended,
            N_("One state per example, whatever its length."),
            ((batch, length, d), N_("That is the memory, a state per token.")),
            ((batch, length), N_("A state is a vector of d_model numbers.")),
            ((length, d), N_("Each example has its own last state.")),
            ((batch, 2 * d), N_("Two directions share the width d_model."))
        ),
        seen("embedded", N_("source vectors"), embedded, "B S:src d_model"),
        seen("keep", N_("1 = a token, 0 = padding"), subject.inputs[0] != 0, "B S:src"),
        seen("memory", N_("a state per source token"), memory, "B S:src d_model"),
        ended,
        names={"encoder": subject.model.get_submodule("encoder")},
    )  # fmt: skip


def bridge(view: BlockView) -> WalkStep:
    """Make the decoder's first states from the encoder's last ones."""
    subject = view.subject
    ends, n = subject.cache["encoder.ends"], subject.anatomy.sizes["n_layers"]
    batch, d = ends.shape
    hidden = subject.cache["bridge.first"].view(batch, n, d)
    return view.step(
        "bridge", N_("Where the decoder starts"), ("bridge", f"bridge-{_cell(subject).name}"),
        "hidden = bridge(last).tanh().view(B, layers, d_model)",
        number_question(
            Paragraph("walk_questions/bridge",
                made=n * d,
                d=d),
            n * d * (d + 1),
            N_("{made} x {d} + {made} = {size:,}.", made=n * d, d=d, size=n * d * (d + 1)),
            wrong={n * d * d: N_("Each output has a bias too.")},
            hint=N_("A linear layer: a weight per pair, a bias per output.")
        ),
        seen("last", N_("the encoder's last state"), ends, "B d_model"),
        seen("hidden", N_("the decoder's first states"), hidden, "B layers d_model"),
        names={
            "bridge": subject.model.get_submodule("bridge"), "B": batch, "layers": n, "d_model": d
        },
    )  # fmt: skip


def scores(view: BlockView) -> WalkStep:
    """How well every state of the decoder matches every state of the encoder."""
    subject = view.subject
    cache, scores = subject.cache, subject.cache[f"{_LOOK}.scores"]
    batch, _, length, n_src = scores.shape
    d = cache["encoder.read"].size(-1)
    made = seen("scores", N_("scores of the pairs"), scores, "B H Q:tgt K:src")
    score = _score(subject)
    return view.step(
        "scores", N_("Scores"), (f"asking-{score.order}", f"score-{score.name}"),
        "scores = score(score.query_projection(states), score.prepare(memory))[:, None]",
        shape_question(
            made,
            N_("Every decoder state meets every encoder state, in one head."),
            ((batch, 1, n_src, n_src), N_("Queries are the decoder's states, keys the source's.")),
            ((batch, 1, length, d), N_("A score is one number.")),
            ((batch, 1, length, length), N_("The keys are the source's states."))
        ),
        seen("states", N_("the decoder's states"), cache[f"{_LOOK}.query_input"],
             "B T:tgt d_model"),
        seen("memory", N_("a state per source token"), cache["encoder.read"], "B S:src d_model"),
        made,
        seen("query", N_("projected decoder states"), cache[f"{_LOOK}.query"],
             "B H Q:tgt d_model"),
        seen("key", N_("projected source states"), cache[f"{_LOOK}.key"], "B H K:src d_model"),
        names={"score": subject.model.get_submodule(f"{_LOOK}.score")},
    )  # fmt: skip


def weights(view: BlockView) -> WalkStep:
    """Turn scores into weights; padding gets none."""
    subject, example = view.subject, view.example
    cache, mask = subject.cache, subject.cache[f"{_LOOK}.mask"]
    weights = cache[f"{_LOOK}.weights"]
    return view.step(
        "weights", N_("Mask and softmax"), ("softmax-recurrent",),
        "masked = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)\n"
        "weights = masked.softmax(-1).masked_fill(~mask, 0.0)",
        _zeros(weights, mask, example),
        seen("scores", N_("scores of the pairs"), cache[f"{_LOOK}.scores"], "B H Q:tgt K:src"),
        seen("mask", N_("1 = may attend"), mask, "B 1 1 K:src"),
        seen("weights", N_("attention weights"), weights, "B H Q:tgt K:src"),
        seen("masked", N_("masked scores"), cache[f"{_LOOK}.masked_scores"], "B H Q:tgt K:src"),
        shown="weights",
    )  # fmt: skip


def _zeros(weights: Tensor, mask: Tensor, example: int) -> Question:
    batch, _, length, n_src = weights.shape
    if weights.is_meta:
        return number_question(
            N_("Over how many rows of the batch does the softmax run?"),
            batch * length,
            N_("{batch} x {length}: one per target token.", batch=batch, length=length),
            wrong={
                batch * n_src: N_("Rows are target tokens; source tokens are columns."),
                length: N_("That is one example."),
            },
            hint=N_("Every target token has its own row."),
        )
    n = length * int((~mask[example]).sum())
    return number_question(
        N_(
            "How many of this example's {length} x {n_src} weights must be 0?",
            length=length,
            n_src=n_src
        ),
        n, N_("{n}: every column of padding, in every row.", n=n),
        wrong={
            n // length: N_("That is one row."),
            length * n_src - n: N_("That is how many may differ from 0."),
        },
        hint=N_("Padding is a column, hidden from every target token."),
        values=("weights", "masked")
    )  # fmt: skip


def context(view: BlockView) -> WalkStep:
    """The weighted sum of the encoder's states."""
    subject, example = view.subject, view.example
    cache = subject.cache
    values, context = cache[f"{_LOOK}.value"], cache[f"{_LOOK}.heads"]
    names = subject.tokens("src", example)
    token = f"“{names[1]}”" if names else N_("position {n}", n=1)
    return view.step(
        "context", N_("Context"), ("context-recurrent",), "context = weights @ values",
        attention.about_one_weight(token, is_state=True),
        seen("weights", N_("attention weights"), cache[f"{_LOOK}.weights"], "B H Q:tgt K:src"),
        seen("values", N_("the encoder's states"), values, "B H K:src d_model"),
        seen("context", N_("context of each target token"), context, "B H Q:tgt d_model"),
    )  # fmt: skip


def writing(view: BlockView) -> WalkStep:
    """Decode the target, token by token."""
    subject = view.subject
    cache, model = subject.cache, subject.model
    tops, logits = cache["decoder.tops"], cache["output.logits"]
    made = seen("logits", N_("a score per token"), logits,
                "B T:tgt V:vocabulary")  # fmt: skip
    parts = {name: model.get_submodule(name) for name in ("decoder", "readout", "output")}
    return view.step(
        "writing", N_("The decoder writes"), ("writing", f"writing-{_score(subject).order}"),
        "states, contexts, after = decoder(tgt_embedded, source, start)\n"
        "x = readout(torch.cat([states, contexts], -1)).tanh()\n"
        "logits = output(x)",
        answer.about_logits(made, tops.size(-1)),
        seen("tgt_embedded", N_("target vectors"), cache["tgt_embedding.embedded"],
             "B T:tgt d_model"),
        seen("memory", N_("a state per source token"), cache["encoder.read"], "B S:src d_model"),
        made,
        seen("x", N_("state and context"), cache["output.answering"], "B T:tgt d_model"),
        seen("states", N_("the decoder's state after each token"), tops, "B T:tgt d_model"),
        seen("contexts", N_("context of each token"), cache["decoder.contexts"],
             "B T:tgt d_model"),
        names={**parts, "source": _source(subject), "start": _start(subject)},
        shown="logits",
    )  # fmt: skip


def _source(subject: Subject) -> EncodedSource:
    cache = subject.cache
    memory, mask = cache["encoder.read"], cache[f"{_LOOK}.mask"][:, 0]
    score: Any = subject.model.get_submodule(f"{_LOOK}.score")
    return EncodedSource(memory, mask, score.prepare(memory), cache["encoder.ends"])


def _start(subject: Subject) -> State:
    hidden = subject.cache["bridge.first"].chunk(subject.anatomy.sizes["n_layers"], -1)
    return State(hidden, tuple(h * 0 for h in hidden) if _cell(subject).has_memory else ())


def _cell(subject: Subject) -> Cell:
    return CELLS[subject.anatomy.of_kind("stack")[-1].variant]


def _score(subject: Subject) -> AlignmentScore:
    return ALIGNMENT_SCORES[subject.anatomy.attentions[0].variant]
