"""The steps from words to vectors: ids in a rectangle, and the rows of a table that they pick."""

from __future__ import annotations

from torch import Tensor

from tfm_core.choices.config import built
from tfm_core.choices.config.shape import CaptionShape, TextShape
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.inspect.questions import Question, choice_question, number_question
from tfm_core.inspect.walk.block_view import BlockView, dropped, drops
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import StepTensor, WalkStep, seen, shape_question
from tfm_core.sentences import N_


def positions(view: BlockView) -> WalkStep:
    """Add the positions, if there are any."""
    subject, axis, module = view.subject, view.axis, view.part.path
    cache, letter = subject.cache, axis.partition(":")[0]
    kind = POSITIONS[view.part.variant]
    embedded, placed = cache[f"{module}.unplaced"], cache[f"{module}.placed"]
    tensors = [
        seen("embedded", N_("vectors without positions"), embedded, f"B {axis} d_model"),
        seen("placed", N_("vectors with positions"), placed, f"B {axis} d_model"),
    ]
    rows, total, names, lines = cache.get(f"{module}.rows"), "embedded", dict[str, object](), []
    question, title = _nothing_added(), N_("Positions")
    topics = ["positions", f"position-{kind.name}", *dropped(subject.config)]
    if rows is not None:
        total = "embedded + rows"
        shown = seen("rows", N_("a row per position"), rows, f"{axis} d_model")
        tensors.append(shown)
        question = _rows_question(shown, placed)
        if kind.has_table:
            table = subject.model.get_parameter(f"{module}.table").detach()
            label = N_("a trained row per possible position")
            tensors.append(seen("table", label, table, "positions d_model"))
            lines = [f"rows = F.embedding(torch.arange({letter}), table)"]
            names[letter] = len(rows)
            question = _table_question(table, len(rows))
    has_segments = bool(subject.anatomy.of_kind("segments"))
    normed = cache.get(f"{module}.normed")
    if drops(subject.config) and not has_segments and normed is None:  # else behind the norm
        total, names["dropout"] = f"dropout({total})", subject.model.get_submodule("dropout")
    lines.append(f"placed = {total}{'' if rows is not None else '  # nothing is added here'}")
    if normed is not None:
        names["norm"] = subject.model.get_submodule(f"{module}.norm")
        lines.append("normed = norm(placed)")
    elif has_segments:
        segments, normed = subject.model.get_submodule("segments"), cache["encoder.input"]
        vector = segments.get_parameter("table.weight").detach()[0]
        tensors.append(seen("segment", N_("vector of the first segment"), vector, "d_model"))
        title, names["norm"] = N_("Positions and segments"), segments.get_submodule("norm")
        topics.append("segments")
        lines.append("normed = norm(placed + segment)")
    if normed is not None:
        tensors.append(seen("normed", N_("the normalised sum"), normed, f"B {axis} d_model"))
    return view.step(
        "positions",
        title,
        topics,
        "\n".join(lines),
        question,
        *tensors,
        names=names,
        shown="" if rows is None else "rows",
    )


def _nothing_added() -> Question:
    return choice_question(
        N_("If two tokens swapped places, what would change after this step?"),
        N_("only the order of the two rows"),
        {
            N_("the numbers in the two rows"): N_("Nothing is added here."),
            N_("every row"): N_("No row reads another here."),
        },
        N_("No number here depends on its row."),
    )


def _table_question(table: Tensor, length: int) -> Question:
    n_rows, d_model = table.shape
    return number_question(
        N_("How many parameters does the position table have?"),
        table.numel(),
        N_("{n} rows of {d_model} = {n_2:,}.", n=n_rows, d_model=d_model, n_2=table.numel()),
        wrong={
            length * d_model: N_("The table has a row per possible position."),
            n_rows: N_("That is the number of rows."),
        },
        hint=N_("Every row is a learned vector of d_model numbers."),
    )


def _rows_question(rows: StepTensor, placed: Tensor) -> Question:
    batch, length, d_model = placed.shape
    return shape_question(
        rows,
        N_("A vector per position, added to all {batch} examples.", batch=batch),
        ((batch, length, d_model), N_("That is the sum; all examples share the rows.")),
        ((length,), N_("Each position has a vector, not one number.")),
        ((d_model, length), N_("A row is a position.")),
        ((batch, length), N_("Those are the ids; positions have vectors.")),
    )


def tokens(view: BlockView) -> WalkStep:
    """Sentences of different length become one rectangle of numbers."""
    subject = view.subject
    src, tgt = subject.source, subject.inputs[-1]
    names: dict[str, object] = {"T": tgt.size(1), "targets": _rows(tgt)}
    code = "tgt = torch.tensor([row + [0] * (T - len(row)) for row in targets])"
    topic = "tokens"
    if isinstance(subject.shape, TextShape) and subject.shape.pad_id is None:
        code, topic = "tgt = torch.tensor(targets)", "tokens-no-padding"
        names["targets"] = [] if tgt.is_meta else tgt.tolist()
        if src is not None:
            topic = "tokens-one-text"
            names["sources"] = [] if src.is_meta else src.tolist()
            code = f"src = torch.tensor(sources)\n{code}"
    elif src is not None:
        names |= {"S": src.size(1), "sources": _rows(src)}
        code = f"src = torch.tensor([row + [0] * (S - len(row)) for row in sources])\n{code}"
    reader = "encoder-decoder" if subject.reader == "recurrent" else subject.reader
    title = N_("Token tensors")
    if subject.anatomy.of_kind("stem"):
        title = N_("Token tensors of the caption")
    return view.step(
        "tokens",
        title,
        (topic, f"tokens-{reader}"),
        code,
        _tokens_question(subject, view.example),
        *ids_seen(subject),
        names=names,
    )


def _rows(ids: Tensor) -> list[list[int]]:
    """Return the ids of each example without its padding; none of a tensor without values."""
    return [] if ids.is_meta else [[i for i in row if i] for row in ids.tolist()]


def _tokens_question(subject: Subject, example: int) -> Question:
    target = ids_seen(subject)[0]
    ids = target.value
    size = ids.size(1)
    has_padding = not isinstance(subject.shape, TextShape) or subject.shape.pad_id is not None
    if ids.is_meta or not has_padding:
        d_model = built(subject.config).d_model
        return shape_question(
            target,
            N_("A row per example, as long as the longest."),
            (tuple(ids.shape)[::-1], N_("The batch comes first.")),
            ((*ids.shape, d_model), N_("An id is one number; vectors come later.")),
            ((ids.numel(),), N_("Each example has its own row.")),
            ((*ids.shape, subject.n_words), N_("An id is one number, not a one-hot vector.")),
            given=N_("{batch} examples, the longest of {size} tokens.", batch=len(ids), size=size),
        )
    n = int((ids[example] == 0).sum())
    return number_question(
        N_(
            "How many of the {size} ids of this example's `{name}` are padding?",
            size=size,
            name=target.name,
        ),
        n,
        N_("{n}: it has {size} tokens of {size_2}.", n=n, size=size - n, size_2=size),
        wrong={size - n: N_("Those are its tokens; the rest is padding.")},
        hint=N_("Count its tokens; the rest of the {size} is padding.", size=size)
        if target.name == "src"
        else N_("Count its tokens, `<bos>` too; the rest is padding.", size=size),
        values=(target.name,),
    )


def ids_seen(subject: Subject) -> tuple[StepTensor, ...]:
    """Return what goes in; a language model and a captioner have no source."""
    src = subject.source
    label = N_("text ids, from <bos> on") if src is None else N_("target ids, from <bos> on")
    if isinstance(subject.shape, CaptionShape):
        label = N_("caption ids, from <bos> on")
    target = seen("tgt", label, subject.inputs[-1], "B T:tgt")
    return (target,) if src is None else (seen("src", N_("source ids"), src, "B S:src"), target)


def embedding(view: BlockView) -> WalkStep:
    """A row of a table for each id."""
    subject, axis, module = view.subject, view.axis, view.part.path
    cache = subject.cache
    table = subject.model.get_submodule(f"{module}.table")
    ids, embedded = cache[f"{module}.ids"], cache[f"{module}.embedded"]
    batch, length, d_model = embedded.shape
    extra, has_source = [], subject.source is not None
    is_one_sequence = axis == "L:sequence"
    if has_source and "tgt_embedding.embedded" in cache and not is_one_sequence:
        target = cache["tgt_embedding.embedded"]
        extra = [seen("tgt_embedded", N_("the target's vectors"), target, "B T:tgt d_model")]
    if has_source and is_one_sequence:
        joined = cache["positions.unplaced"]
        extra = [
            seen("joined", N_("source and target in one sequence"), joined, f"B {axis} d_model")
        ]
    n_words = table.get_parameter("weight").size(0)
    made = seen("embedded", N_("a vector per token"), embedded, f"B {axis} d_model")
    is_scaled = not isinstance(subject.shape, TextShape) or subject.shape.scale_embedding
    return view.step(
        "embedding",
        N_("Embedding"),
        ("embedding", "embedding-scaled" if is_scaled else "embedding-unscaled")
        + ((f"embedding-{subject.reader}",) if has_source or subject.memory_axis else ()),
        f"embedded = table(ids){' * math.sqrt(d_model)' if is_scaled else ''}",
        shape_question(
            made,
            N_("Each id becomes a row of {d_model} numbers.", d_model=d_model),
            ((batch, length), N_("Those are the ids: each becomes a vector.")),
            ((batch, d_model, length), N_("A token's numbers are on the last axis.")),
            ((batch, length, n_words), N_("Those would be one-hot vectors.")),
            ((n_words, d_model), N_("That is the table.")),
        ),
        seen("ids", N_("token ids"), ids, f"B {axis}"),
        made,
        *extra,
        names={"table": table, "d_model": d_model},
    )
