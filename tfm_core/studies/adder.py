"""The smallest adder: when it learns the carry, where it keeps it, and all of its weights.

At the second bit of a column a model of one layer has read both bits, and all of the columns
before. What its attention adds there depends on these by one bit only, the carry, if it adds.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfm_core.choices.config import CorpusTaskConfig, DecoderOnlyConfig, Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.data.tasks import corpus_task, data_shape
from tfm_core.data.text.in_context import BASE, WIDTH, column_sum, partial_scores, read_sum
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.inspect.attention.trained import (
    cached_by_folder,
    cached_by_weights,
    data_of,
    model_at,
    models_by_step,
)
from tfm_core.inspect.tables import Column, Columns
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, StudentError
from tfm_core.studies.phenomenon import (
    Example,
    Levels,
    Phenomenon,
    decoder_of,
    first,
    ids_of,
    sequences,
    stays,
)
from tfm_core.studies.study import Arm

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.models.build import Model

_Ints = npt.NDArray[np.int64]
LEARNED = 0.99
"""The share of digits with a carry that are right where a model has learned the carry."""
_N_SUMS = 1000
BLOCK = "decoder.layers.0"
_ROUNDING = 1e-5  # the stream is float32: directions that are weaker hold rounding alone
PLACES = (
    "b",
    "a",
    N_("sum before"),
    N_("b before"),
    N_("a before"),
    N_("older"),
)
"""Where the second bit of a column may look, from itself back."""
TOTALS = tuple(range(2 * BASE))
"""What a column can come to with its carry: 0 to 3."""
_COLUMNS = 5  # of an example


def _of_columns(experiment: Experiment) -> Levels:
    found = partial_scores(sequences(experiment))
    return {
        N_("guessing"): 1 / BASE,
        N_("no carries"): found.no_carry,
        N_("carries from one column only"): found.one_column,
        N_("every bit"): 1.0,
    }


def _column_sum(experiment: Experiment) -> Example:
    """Return a sum as two numbers, and its first columns with the bits of the sum marked."""
    (tokens,) = sequences(experiment, 1)
    a, b, total = read_sum(tokens)
    pieces = [(f"{a} + {b} = {total}:", False)]
    for start in range(0, _COLUMNS * WIDTH, WIDTH):
        *read, written = tokens[start : start + WIDTH]
        pieces += [(" ".join(read), False), (written, True), ("·", False)]
    return (*pieces[:-1], ("…", False))


_NARROW = {"model.d_model": 4, "model.n_heads": 2}
ADDER = Phenomenon(
    name="adder",
    title=N_("The smallest adder"),
    base=PRESETS["adder"].experiment,
    arms=(
        Arm("adder", N_("the adder")),
        Arm("smaller", N_("a quarter of the size"), {**_NARROW, "model.d_ff": 2}),
        Arm("fewer", N_("a quarter, minus one neuron"), {**_NARROW, "model.d_ff": 1}),
        Arm("blind", N_("sees one column"), {"model.window": 1}),
    ),
    metrics=("validation-accuracy",),
    right=N_("about 500"),
    wrong={
        N_("about 50,000"): Paragraph("discover/adder-many"),
        N_("about 5,000"): Paragraph("discover/adder-many"),
    },
    paper="Quirke & Barez 2023",
    address="https://arxiv.org/abs/2310.13121",
    levels=_of_columns,
    example=_column_sum,
)


def sums_of(sequences: Sequence[Sequence[str]]) -> _Ints:
    """Return a, b, the digit and the carry into each column (4, N, n) of sums from their tokens.

    A column that is not whole is left out.
    """
    n = len(sequences[0]) // WIDTH
    whole = np.array([list(map(int, tokens[: n * WIDTH])) for tokens in sequences], np.int64)
    a, b, digit = (whole[:, part::WIDTH] for part in range(WIDTH))
    return np.stack([a, b, digit, (digit - a - b) % BASE])


def new_sums(run: Run) -> list[tuple[str, ...]]:
    """Draw sums that the run was not trained on. Raises StudentError where there are none."""
    from tfm_core.data.moving import data_as
    from tfm_core.data.text_data import TextData

    experiment = run.experiment
    context = experiment.task_as(CorpusTaskConfig).context
    trained = {pair.tgt for pair in data_as(data_of(experiment), TextData).train.pairs}
    rng = random.Random(f"new sums {experiment.seed}")
    drawn = (column_sum(rng, context) for _ in range(20 * _N_SUMS))
    found = list(islice((tokens for tokens in drawn if tokens[:-1] not in trained), _N_SUMS))
    if not found:
        raise StudentError("This run was trained on all sums.")
    return found


def learned(history: pd.DataFrame) -> int | None:
    """Return the first step from which on the carry is there, or None.

    It is there where at least LEARNED of the bits with a carry are right; at the start it is not.
    """
    is_there = stays(history["carried"].to_numpy() >= LEARNED)
    return None if is_there[:1].all() else first(history["step"].to_numpy(), is_there)


def history(run: Run) -> pd.DataFrame:
    """Return the share of bits right at each step whose weights are kept.

    Columns: step; carried: of the bits with a carry; others: of those without.
    """
    rows = [(step, *_right_at(run, step)) for step, _model in models_by_step(run)]
    return pd.DataFrame(rows, columns=["step", "carried", "others"])


@cached_by_folder
def _right_at(run: Run, step: int) -> tuple[float, float]:
    rows, (_a, _b, digit, carry) = read_sums(run)
    is_right = _answers(model_at(run, step), rows) == digit
    has = carry == 1
    return float(is_right[has].mean()), float(is_right[~has].mean())


@cached_by_weights
def exact(run: Run) -> float:
    """Return the share of new sums that the last weights write right, every bit.

    They read their own bits of the sum. Raises ValueError.
    """
    import torch

    model = decoder_of(run)
    rows, (_a, _b, digit, _carry) = read_sums(run)
    zero = int(ids_of(run, ["0"])[0, 1])
    for column in range(digit.shape[1]):
        written = _answers(model, rows)[:, column]
        rows[:, WIDTH * (column + 1)] = torch.from_numpy(written + zero)
    found = (rows[:, WIDTH::WIDTH].numpy() - zero)[:, : digit.shape[1]]
    return float((found == digit).all(1).mean())


def read_right(table: pd.DataFrame) -> float:
    """Return the share of columns of ``carry_of`` on the right side of one half."""
    return float(((table["read"] > 0.5) == table["has_carry"]).mean())


_MAX_DOTS = 60  # of each total
CARRY = Columns(
    before=Column(
        N_("sum of the column before"), axis={"tickvals": [0, 1, 2, 3], "showgrid": False}
    ),
    read=Column(N_("predicted by the probe"), ".2f"),
)


@cached_by_weights
def carry_of(run: Run) -> pd.DataFrame:
    """Return where the last weights keep the carry, by a linear probe of the stream.

    A row for each column but the first, of sums that the probe was not fitted to. read: by the
    probe, behind attention, 0 without and 1 with a carry; before: a + b + carry of the column
    before; has_carry. Raises ValueError.
    """
    from tfm_core.probe.capture import capture

    model = decoder_of(run)
    rows, (a, b, _digit, carry) = read_sums(run)
    with capture(model, only={"joined"}, modules={f"{BLOCK}.self_attention_norm"}) as cache:
        _answers(model, rows)
    (stream,) = cache.values()
    seen = stream[:, WIDTH - 1 :: WIDTH].double().numpy()[:, : a.shape[1]]
    half = len(rows) // 2

    def flat(part: _Ints, chosen: slice) -> _Ints:
        return part[chosen, 1:].ravel()

    def read(chosen: slice) -> Floats:
        bits = (np.eye(BASE)[flat(part, chosen)] for part in (a, b))
        return np.concatenate([seen[chosen, 1:].reshape(-1, seen.shape[-1]), *bits], 1)

    fit, rest = slice(0, half), slice(half, None)
    carries = flat(carry, fit).astype(np.float64)
    probe = np.linalg.lstsq(read(fit), carries, rcond=_ROUNDING)[0]
    before = (a + b + carry)[rest, :-1].ravel()
    return CARRY.table(
        {"read": read(rest) @ probe, "before": before, "has_carry": flat(carry, rest) == 1}
    )


def dots(found: pd.DataFrame) -> pd.DataFrame:
    """Return some columns of each total beside each other, and whether each has a carry.

    found: of ``carry_of``.
    """
    some = found.groupby("before").head(_MAX_DOTS).sort_values("before", kind="stable")
    each = some.groupby("before")["read"]
    place = each.cumcount() / (each.transform("size") - 1).clip(lower=1)
    spread = some["before"] - 0.3 + 0.6 * place
    return CARRY.table(some.assign(before=spread, has=some["before"] >= 2))


@cached_by_weights
def set_by_hand(run: Run) -> tuple[float, float]:
    """Return the share of answers that flip with attention's output of another sum's column.

    Both columns have the same two bits; first where their carries differ, then where they do not.
    Raises ValueError.
    """
    import torch

    from tfm_core.probe.capture import capture, intervene

    model = decoder_of(run)
    rows, (a, b, _digit, carries) = read_sums(run)
    clean = _answers(model, rows)
    n = a.shape[1]
    attention = f"{BLOCK}.self_attention"
    with capture(model, only={"output"}, modules={attention}) as seen:
        _answers(model, rows)
    places = seen[f"{attention}.output"][:, WIDTH - 1 :: WIDTH][:, 1:n].flatten(0, 1)
    kinds = 2 * a[:, 1:].ravel() + b[:, 1:].ravel()
    carry, rng = carries[:, 1:].ravel(), np.random.default_rng(0)

    def flipped(differs: int) -> float:
        """Return the share of flipped answers with other columns, whose carry differs or not."""
        donors = np.arange(len(kinds))
        for kind in range(BASE**2):
            for has in range(2):
                here = np.flatnonzero((kinds == kind) & (carry == has))
                there = np.flatnonzero((kinds == kind) & (carry == (has ^ differs)))
                if len(there):
                    donors[here] = rng.choice(there, len(here))
        given = places[torch.from_numpy(donors)].reshape(len(rows), n - 1, -1)

        def put(out: Tensor, _made_from: object) -> Tensor:
            out = out.clone()
            out[:, 2 * WIDTH - 1 : n * WIDTH : WIDTH] = given
            return out

        with intervene(model, {f"{attention}.output": put}):
            return float((_answers(model, rows) != clean)[:, 1:].mean())

    return flipped(1), flipped(0)


def read_sums(run: Run) -> tuple[Tensor, _Ints]:
    """Return new sums as ids (N, 1 + context) and as ``sums_of``. Raises StudentError."""
    drawn = new_sums(run)
    return ids_of(run, drawn), sums_of(drawn)


def _answers(model: Model, rows: Tensor) -> _Ints:
    """Return the bit that a model gives each whole column (N, n), with the true ones before."""
    import torch

    n = (rows.size(1) - 1) // WIDTH
    with torch.inference_mode():
        logits = model(rows[:, :0], rows[:, :-1])[:, WIDTH - 1 :: WIDTH][:, :n, -BASE:]
    answers: _Ints = logits.argmax(-1).numpy()
    return answers


def n_parameters(experiment: Experiment) -> int:
    """Return how many parameters an experiment's model has."""
    return parameter_table(experiment.model, data_shape(experiment)).total


@cached_by_weights
def steps_of(run: Run) -> tuple[Floats, Floats, float, Floats, Floats]:
    """Return what the last weights do at the second bit of a column, on average.

    In turn: the attention of each head (H, places); what a 1 in a place adds to the stream behind
    attention (places - 1, d_model); the share of its variance that these five bits explain; the
    output of the neurons by what the column comes to (d_ff, totals); and the logit of 1 minus that
    of 0 (totals,). Raises ValueError.
    """
    import torch

    from tfm_core.probe.capture import capture

    model = decoder_of(run)
    rows, (a, b, digit, carry) = read_sums(run)
    n = a.shape[1]
    attention, neurons = f"{BLOCK}.self_attention", f"{BLOCK}.feed_forward"
    names = [attention, f"{attention}_norm", neurons]
    wanted = {"weights", "joined", "hidden"}
    with torch.inference_mode(), capture(model, only=wanted, modules=names) as cache:
        logits = model(rows[:, :0], rows[:, :-1])

    def at(tensor: torch.Tensor) -> Floats:
        """Return (N, n - 1, ...) of all columns but the first, at their second bits."""
        found: Floats = tensor[:, WIDTH - 1 :: WIDTH][:, 1:n].double().numpy()
        return found

    weights = at(cache[f"{attention}.weights"].transpose(1, 2))  # (N, n - 1, H, K)
    looks = np.zeros((weights.shape[2], len(PLACES)))
    for column in range(1, n):
        query = WIDTH * column + WIDTH - 1
        back = weights[:, column - 1, :, query::-1].mean(0)  # (H, query + 1)
        looks[:, :-1] += back[:, : len(PLACES) - 1]
        looks[:, -1] += back[:, len(PLACES) - 1 :].sum(1)
    stream = at(cache[f"{attention}_norm.joined"])
    flat = stream.reshape(-1, stream.shape[-1])
    here, before = np.s_[:, 1:], np.s_[:, :-1]
    bits = [b[here], a[here], digit[before], b[before], a[before]]
    known = np.stack([*(part.ravel() for part in bits), np.ones(len(flat))], 1)
    fitted = np.asarray(np.linalg.lstsq(known, flat, rcond=None)[0], np.float64)
    left = flat - known @ fitted
    spread = flat - flat.mean(0)
    total = (a + b + carry)[here].ravel()
    hidden = at(cache[f"{neurons}.hidden"])
    hidden = hidden.reshape(-1, hidden.shape[-1])
    margin = at(logits)[..., -1].ravel() - at(logits)[..., -BASE].ravel()
    return (
        looks / (n - 1),
        fitted[:-1],
        float(1 - (left**2).sum() / (spread**2).sum()),
        np.stack([hidden[total == one].mean(0) for one in TOTALS], 1),
        np.array([margin[total == one].mean() for one in TOTALS]),
    )


Weights = tuple[str, Floats, tuple[str, ...], tuple[str, ...], str]
"""Weights of one kind: a name, values (rows, columns), their names, and what they do."""


@cached_by_weights
def weights_of(run: Run) -> list[Weights]:
    """Return all of the last weights, by kind. Raises ValueError."""
    model = decoder_of(run)
    config = run.experiment.model_as(DecoderOnlyConfig)
    words = corpus_task(run.experiment.task_as(CorpusTaskConfig)).tgt_vocabulary
    tokens = tuple(words.token(number) for number in range(len(words)))
    of = {name: value.detach().double().numpy() for name, value in model.named_parameters()}
    taken: set[str] = set()
    found: list[Weights] = []

    def part(*names: str) -> Floats:
        """Return the weights of a layer with its bias, if it has one, as a last column."""
        taken.update(name for name in names if name in of)
        matrix, *biases = [of[name] for name in names if name in of]
        joined: Floats = np.column_stack([matrix, *biases])
        return joined

    def layer(path: str) -> Floats:
        return part(f"{BLOCK}.{path}.weight", f"{BLOCK}.{path}.bias")

    def add(
        name: str, values: Floats, rows: Sequence[str], columns: Sequence[str], words: str
    ) -> None:
        bias = (N_("bias"),) if values.shape[1] > len(columns) else ()
        found.append((name, values, tuple(rows), (*columns, *bias), words))

    def numbered(letter: str, n: int) -> list[str]:
        return [f"{letter}{one}" for one in range(1, n + 1)]

    stream, neurons = numbered("x", config.d_model), numbered("n", config.d_ff)
    q, heads = numbered("q", config.d_q), numbered("h", config.d_q)
    k, v = numbered("k", config.d_kv), numbered("v", config.d_kv)
    projected = layer("self_attention.in_projection")
    queries, keys, values = np.split(projected, [config.d_q, config.d_q + config.d_kv])
    merged = layer("self_attention.out_projection")
    table = part("src_embedding.table.weight")
    add(N_("Embedding and output"), table, tokens, stream, Paragraph("discover/adder-embedding"))
    add(N_("Queries"), queries, q, stream, Paragraph("discover/adder-queries"))
    add(N_("Keys"), keys, k, stream, Paragraph("discover/adder-keys"))
    add(N_("Values"), values, v, stream, Paragraph("discover/adder-values"))
    add(N_("Output of the heads"), merged, stream, heads, Paragraph("discover/adder-merge"))
    up, down = layer("feed_forward.up"), layer("feed_forward.down")
    add(N_("Neurons, in"), up, neurons, stream, Paragraph("discover/adder-up"))
    if f"{BLOCK}.feed_forward.gate.weight" in of:
        gate = layer("feed_forward.gate")
        add(N_("Gates"), gate, neurons, stream, Paragraph("discover/adder-gate"))
    add(N_("Neurons, out"), down, stream, neurons, Paragraph("discover/adder-down"))
    if "output.bias" in of:
        bias = part("output.bias").T
        add(N_("Output bias"), bias, [N_("bias")], tokens, Paragraph("discover/adder-bias"))
    norms = {
        f"{BLOCK}.self_attention_norm.weight": N_("attention"),
        f"{BLOCK}.feed_forward_norm.weight": N_("neurons"),
        "decoder.final_norm.weight": N_("output"),
    }
    if there := [name for name in norms if name in of]:
        scales = np.stack([part(name)[:, 0] for name in there])
        names = [norms[name] for name in there]
        add(N_("Norms"), scales, names, stream, Paragraph("discover/adder-norms"))
    assert taken == set(of), f"unseen: {set(of) - taken}"
    return found
