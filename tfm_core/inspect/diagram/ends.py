"""What stands before the stacks of a diagram and behind them: inputs, embeddings, the answer."""

from __future__ import annotations

from tfm_core.anatomy import Part
from tfm_core.choices.config.shape import Shape, TextShape
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.poolings import POOLINGS
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.stems import STEMS
from tfm_core.inspect.diagram.drawing import Drawing, Rows
from tfm_core.sentences import N_


def model_input(drawing: Drawing, part: Part) -> None:
    """Draw a picture or ids, on top of a column."""
    name = part.outputs[0].name
    if drawing.last and not drawing.memory:  # the regions of a picture are not encoded
        shape = drawing.shape(drawing.part("stem").outputs[0])
        drawing.memory = drawing.words("memory", N_("memory"), shape)
        drawing.edge(drawing.last, drawing.memory, has_head=False)
    drawing.side = name.removesuffix(" ids") if name.endswith(" ids") else ""
    label = _ids(drawing) if drawing.side else N_("Picture")
    steps = ("tokens", "masks") if drawing.side else part.steps
    drawing.last = drawing.box(name, "data", label, part, steps=steps)


def _ids(drawing: Drawing) -> str:
    """Return what the ids of a column are in this model."""
    shape, sizes = drawing.model.shape, drawing.sizes
    if drawing.has_two_columns or not isinstance(shape, TextShape):
        return N_("Source ids") if drawing.side == "src" else N_("Target ids, shifted right")
    if drawing.writes:
        return N_("Source, then target ids") if shape.has_source else N_("Token ids")
    if shape.has_cls:
        return N_("Token ids, CLS in front")
    if shape.head != "tokens":
        return N_("Token ids")
    if shape.mask_id:
        return N_("Token ids, some hidden")
    if sizes["S"] > drawing.src_len:
        return N_("Source ids, then empty slots")
    return N_("Source ids")


def embedding(drawing: Drawing, part: Part) -> None:
    """Draw the table of a column of ids, or both tables of source and target in one sequence."""
    tables = [
        other
        for other in drawing.model.folded
        if (other.layer, other.inputs) == (part.layer, part.inputs)
    ]
    if part is not tables[0]:
        return
    weights = [table.children[0].parameters[0] for table in tables if not table.is_second_name]
    sizes = " + ".join(f"{weight.shape[0]:,}" for weight in weights)
    sizes = f"({sizes})" if len(weights) > 1 else sizes
    is_shared = any(weight.tied_to for weight in weights)
    count = (N_("shared with the source"),) if is_shared else None
    shape, d_model = drawing.model.shape, drawing.number("d_model")
    is_scaled = not isinstance(shape, TextShape) or shape.scale_embedding
    words = N_("Embedding, times √{d_model}", d_model=d_model) if is_scaled else N_("Embedding")
    name = drawing.box(
        part.path,
        "embedding",
        (words, f"{sizes} x {d_model}"),
        part,
        title=_embedded(drawing, shape),
        paths=[table.path for table in tables],
        count=count,
    )
    drawing.lead(name)


def _embedded(drawing: Drawing, shape: Shape) -> str:
    """Return what a table of embeddings is for."""
    if not isinstance(shape, TextShape):
        return N_("Embedding of the words")
    is_of_source = shape.head == "tokens" and not shape.mask_id
    if drawing.has_two_columns:
        is_of_source = drawing.side == "src"
        return N_("Embedding of the source") if is_of_source else N_("Embedding of the target")
    if drawing.writes and shape.has_source:
        return N_("Embedding of the source and the target")
    if drawing.writes or not is_of_source:
        return N_("Embedding of the tokens")
    return N_("Embedding of the source")


def positions(drawing: Drawing, part: Part) -> None:
    """Draw what is added for positions, if anything."""
    kind = POSITIONS[part.variant]
    if not kind.is_added:
        return
    name = f"{drawing.side}_positions" if drawing.side else part.path
    norms = (NORMS[child.variant].label for child in part.children)
    label, title = (N_("+ positions"), kind.label, *norms), N_("Positions")
    drawing.box(name, "embedding", label, part, title=title, paths=[part.path])
    drawing.lead(name)


def segments(drawing: Drawing, part: Part) -> None:
    """Draw the vector of a segment, and the norm behind it."""
    label = N_("Segments and norm")
    drawing.lead(drawing.box(part.path, "embedding", label, *part, paths=[part.path]))


def stem(drawing: Drawing, part: Part) -> None:
    """Draw the patches of a picture."""
    size = drawing.number("patch_size")
    label = N_("{cut} of {size} x {size}, projected", cut=STEMS[part.variant].drawn, size=size)
    drawing.lead(drawing.box(part.path, "embedding", label, part, paths=[part.path]))


def cls(drawing: Drawing, part: Part) -> None:
    """Draw the token in front of the patches."""
    count = (N_("{n:,} parameters", n=part.parameters[0].size),)
    label = N_("CLS token in front")
    drawing.lead(drawing.box("cls", "embedding", label, part, paths=[part.path], count=count))


def pooling(drawing: Drawing, part: Part) -> None:
    """Draw how many vectors become one."""
    tokens = N_("words") if drawing.side else N_("patches")
    label = N_(POOLINGS[part.variant].drawn, tokens=tokens)
    drawing.lead(drawing.box("pool", "data", label, part))


def head(drawing: Drawing, part: Part) -> None:
    """Draw the last layer, if there is one."""
    if part.layer == "Identity":
        return
    d_model = drawing.number("d_model")
    if part.layer == "Pooler":
        label: str | Rows = N_("Pooler: first token, tanh")
    elif part.layer == "LabelOutput":
        hidden = f"{drawing.number('n_hidden')}, ReLU, x " if len(part.children) > 1 else ""
        labels = drawing.number("n_labels")
        label = N_("Linear to the labels"), f"{d_model} x {hidden}{labels}"
    else:
        tied = (N_("the embedding’s matrix: tied"),) if part.parameters[0].tied_to else ()
        answers = drawing.number(part.outputs[0].shape[-1])
        label = N_("Linear"), f"{d_model} x {answers}", *tied
    drawing.lead(drawing.box("output", "output", label, part, paths=[part.path]))


_ANSWERS = {"Pooler": N_("Vector of the text"), "Identity": N_("Vectors of all tokens")}


def answer(drawing: Drawing, part: Part) -> None:
    """Draw what the model says."""
    layer = next(other.layer for other in drawing.model.folded if other.kind == "head")
    label = _ANSWERS.get(layer, N_("Logits"))
    drawing.lead(drawing.box("logits", "data", label, part), drawing.shape(part.outputs[0]))
