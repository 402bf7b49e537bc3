"""The steps of a recurrent model with attention."""

from __future__ import annotations

from typing import Any

from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES, CELLS, AlignmentScore
from tfm_core.inspect.questions import Question
from tfm_core.layers.recurrent import EncodedSource
from tfm_core.models.recurrent import State
from tfm_core.sentences import N_
from tfm_core.trace.attention import about_one_weight
from tfm_core.trace.ends import about_logits
from tfm_core.trace.steps import Step, View, ask_number, ask_shape
from tfm_core.trace.subject import Subject

_LOOK = "decoder.cross_attention"


def embedding(view: View) -> Step:
    """A row of a table for each id, of source and target."""
    n_words = view.subject.anatomy.sizes["src_words"]
    d = view.recorded("embedded").value.size(-1)
    return view.step(
        N_("Embedding"),
        ("embedding", "embedding-recurrent"),
        "embedded = src_embedding(src)\ntgt_embedded = tgt_embedding(tgt)",
        ask_number("table", n_words * d, {"sum": n_words + d}, n_words=n_words, d=d),
    )


def reading(view: View) -> Step:
    """The source, token by token, from one end or from both."""
    batch, length, d = view.recorded("memory").shape
    is_both = len(view.part.children) > 1
    keep = view.subject.inputs[0] != 0
    return view.step(
        N_("The encoder reads"),
        ("reading", "reading-both" if is_both else "reading-onward"),
        "memory, last = encoder(embedded, keep)",
        ask_shape(
            "reading",
            view.recorded("last"),
            {
                "memory": (batch, length, d),
                "width": (batch, length),
                "alone": (length, d),
                "twice": (batch, 2 * d),
            },
        ),
        view.seen("keep", N_("1 = a token, 0 = padding"), keep, "B S:src"),
    )


def bridge(view: View) -> Step:
    """Make the decoder's first states from the encoder's last ones."""
    subject = view.subject
    n, (batch, d) = subject.anatomy.sizes["n_layers"], view.recorded("last").shape
    hidden, made = subject.cache["bridge.first"].view(batch, n, d), n * d
    return view.step(
        N_("Where the decoder starts"),
        ("bridge", f"bridge-{subject.anatomy.of_kind('stack')[-1].variant}"),
        "hidden = bridge(last).tanh().view(B, layers, d_model)",
        ask_number("bridge", made * (d + 1), {"unbiased": made * d}, made=made, d=d),
        view.seen("hidden", N_("the decoder's first states"), hidden, "B layers d_model"),
        names={"B": batch, "layers": n, "d_model": d},
    )


def scores(view: View) -> Step:
    """How well every state of the decoder matches every state of the encoder."""
    subject, made = view.subject, view.recorded("scores")
    (batch, _, length, n_src), d = made.shape, view.recorded("memory").shape[-1]
    score, states = _score(subject), f"{_LOOK}.query_input"
    return view.step(
        N_("Scores"),
        (f"asking-{score.order}", f"score-{score.name}"),
        "scores = score(score.query_projection(states), score.prepare(memory))[:, None]",
        ask_shape(
            "state_scores",
            made,
            {
                "source": (batch, 1, n_src, n_src),
                "width": (batch, 1, length, d),
                "target": (batch, 1, length, length),
            },
        ),
        view.seen("states", N_("the decoder's states"), states, "B T:tgt d_model"),
        view.seen("query", N_("projected decoder states"), f"{_LOOK}.query", "B H Q:tgt d_model"),
        view.seen("key", N_("projected source states"), f"{_LOOK}.key", "B H K:src d_model"),
        names={"score": subject.model.get_submodule(f"{_LOOK}.score")},
    )


def weights(view: View) -> Step:
    """Turn scores into weights; padding gets none."""
    return view.step(
        N_("Mask and softmax"),
        ("softmax-recurrent",),
        "masked = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)\n"
        "weights = masked.softmax(-1).masked_fill(~mask, 0.0)",
        _zeros(view),
        shown="weights",
    )


def _zeros(view: View) -> Question:
    weights = view.recorded("weights").value
    batch, _, length, n_src = weights.shape
    if weights.is_meta:
        rows = {"source": batch * n_src, "one": length}
        return ask_number("softmax_rows", batch * length, rows, batch=batch, length=length)
    n = length * int((~view.recorded("mask").value[view.example]).sum())
    wrong = {"row": n // length, "rest": length * n_src - n}
    values = ("weights", "masked")
    return ask_number("state_zeros", n, wrong, values=values, length=length, n_src=n_src)


def context(view: View) -> Step:
    """The weighted sum of the encoder's states."""
    names = view.subject.tokens("src", view.example)
    token = f"“{names[1]}”" if names else N_("position {n}", n=1)
    question = about_one_weight(token, is_state=True)
    return view.step(N_("Context"), ("context-recurrent",), "context = weights @ values", question)


def writing(view: View) -> Step:
    """Decode the target, token by token."""
    subject, made = view.subject, view.recorded("logits")
    return view.step(
        N_("The decoder writes"),
        ("writing", f"writing-{_score(subject).order}"),
        "states, contexts, after = decoder(tgt_embedded, source, start)\n"
        "x = readout(torch.cat([states, contexts], -1)).tanh()\n"
        "logits = output(x)",
        about_logits(made, view.recorded("states").shape[-1]),
        view.recorded("memory"),
        names={"source": _source(subject), "start": _start(subject)},
        shown="logits",
    )


def _source(subject: Subject) -> EncodedSource:
    cache = subject.cache
    memory, mask = cache["encoder.read"], cache[f"{_LOOK}.mask"][:, 0]
    score: Any = subject.model.get_submodule(f"{_LOOK}.score")
    return EncodedSource(memory, mask, score.prepare(memory), cache["encoder.ends"])


def _start(subject: Subject) -> State:
    hidden = subject.cache["bridge.first"].chunk(subject.anatomy.sizes["n_layers"], -1)
    has_memory = CELLS[subject.anatomy.of_kind("stack")[-1].variant].has_memory
    return State(hidden, tuple(h * 0 for h in hidden) if has_memory else ())


def _score(subject: Subject) -> AlignmentScore:
    return ALIGNMENT_SCORES[subject.anatomy.attentions[0].variant]
