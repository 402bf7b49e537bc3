"""What stands before the stacks of a diagram and behind them: inputs, embeddings, the answer."""

from __future__ import annotations

from tfm_core.anatomy import Part
from tfm_core.config.shape import Shape, TextShape
from tfm_core.inspect.diagram.drawing import BREAK, Drawing
from tfm_core.sentences import N_
from tfm_core.variants.poolings import POOLINGS
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.stems import STEMS


def model_input(drawing: Drawing, part: Part) -> None:
    """Draw a picture or ids, on top of a column."""
    name = part.outputs[0].name
    drawing.side = name.removesuffix(" ids") if name.endswith(" ids") else ""
    label = _ids(drawing) if drawing.side else "Picture"
    steps = ("tokens", "masks") if drawing.side else part.steps
    drawing.last = drawing.box(name, "data", label, part, steps=steps)


def _ids(drawing: Drawing) -> str:
    """Return what the ids of a column are in this model."""
    shape, sizes = drawing.model.shape, drawing.sizes
    if drawing.has_two_columns or not isinstance(shape, TextShape):
        return "Source ids" if drawing.side == "src" else "Target ids, shifted right"
    if drawing.writes:
        return "Source, then target ids" if shape.has_source else "Token ids"
    if shape.has_cls:
        return "Token ids, CLS in front"
    if shape.head != "tokens":
        return "Token ids"
    if shape.mask_id:
        return "Token ids, some hidden"
    return "Source ids, then empty slots" if sizes["S"] > drawing.src_len else "Source ids"


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
    count = f"{BREAK}shared with the source" if is_shared else None
    shape, d_model = drawing.model.shape, drawing.number("d_model")
    is_scaled = not isinstance(shape, TextShape) or shape.scale_embedding
    scale = f", times √{d_model}" if is_scaled else ""
    name = drawing.box(
        part.path,
        "embedding",
        f"Embedding{scale}{BREAK}{sizes} x {d_model}",
        part,
        title=f"Embedding of the {_embedded(drawing, shape)}",
        paths=[table.path for table in tables],
        count=count,
    )
    drawing.lead(name)


def _embedded(drawing: Drawing, shape: Shape) -> str:
    """Return what a table of embeddings is for."""
    if not isinstance(shape, TextShape):
        return "words"
    if drawing.has_two_columns:
        return "source" if drawing.side == "src" else "target"
    if drawing.writes:
        return "source and the target" if shape.has_source else "tokens"
    return "tokens" if shape.head != "tokens" or shape.mask_id else "source"


def positions(drawing: Drawing, part: Part) -> None:
    """Draw what is added for positions, if anything."""
    kind = POSITIONS[part.variant]
    if not kind.is_added:
        return
    name = f"{drawing.side}_positions" if drawing.side else part.path
    label, title = f"+ positions{BREAK}{kind.label.lower()}", N_("Positions")
    drawing.box(name, "embedding", label, part, title=title, paths=[part.path])
    drawing.lead(name)


def segments(drawing: Drawing, part: Part) -> None:
    """Draw the vector of a segment, and the norm behind it."""
    label = "Segments and norm"
    drawing.lead(drawing.box(part.path, "embedding", label, *part, paths=[part.path]))


def stem(drawing: Drawing, part: Part) -> None:
    """Draw the patches of a picture."""
    size = drawing.number("patch_size")
    label = f"{STEMS[part.variant].drawn} of {size} x {size}, projected"
    drawing.lead(drawing.box(part.path, "embedding", label, part, paths=[part.path]))


def cls(drawing: Drawing, part: Part) -> None:
    """Draw the token in front of the patches."""
    count = f"{BREAK}{part.parameters[0].size} parameters"
    label = "CLS token in front"
    drawing.lead(drawing.box("cls", "embedding", label, part, paths=[part.path], count=count))


def pooling(drawing: Drawing, part: Part) -> None:
    """Draw how many vectors become one."""
    tokens = "words" if drawing.side else "patches"
    label = POOLINGS[part.variant].drawn.format(tokens=tokens)
    drawing.lead(drawing.box("pool", "data", label, part))


def head(drawing: Drawing, part: Part) -> None:
    """Draw the last layer, if there is one."""
    if part.layer == "Identity":
        return
    d_model = drawing.number("d_model")
    if part.layer == "Pooler":
        label = "Pooler: first token, tanh"
    elif part.layer == "LabelOutput":
        hidden = f"{drawing.number('n_hidden')}, ReLU, x " if len(part.children) > 1 else ""
        labels = drawing.number("n_labels")
        label = f"Linear to the labels{BREAK}{d_model} x {hidden}{labels}"
    else:
        tied = f"{BREAK}the embedding's matrix: tied" if part.parameters[0].tied_to else ""
        answers = drawing.number(part.outputs[0].shape[-1])
        label = f"Linear{BREAK}{d_model} x {answers}{tied}"
    drawing.lead(drawing.box("output", "output", label, part, paths=[part.path]))


_ANSWERS = {"Pooler": "Vector of the text", "Identity": "Vectors of all tokens"}


def answer(drawing: Drawing, part: Part) -> None:
    """Draw what the model says."""
    layer = next(other.layer for other in drawing.model.folded if other.kind == "head")
    label = _ANSWERS.get(layer, "Logits")
    drawing.lead(drawing.box("logits", "data", label, part), drawing.shape(part.outputs[0]))
