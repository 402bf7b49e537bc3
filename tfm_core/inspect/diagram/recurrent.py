"""The diagram of a recurrent model: two networks, and the attention between them."""

from __future__ import annotations

from tfm_core.anatomy import Part
from tfm_core.inspect.diagram.drawing import Drawing, about
from tfm_core.sentences import N_
from tfm_core.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.variants.cells import CELLS


def encoder(drawing: Drawing, part: Part) -> None:
    """Draw the encoder, and what makes the decoder's first state of its last ones."""
    n = len(part.children)
    n_drawn = n if drawing.opened else 1
    for layer, reader in enumerate(part.children[:n_drawn]):
        times = f" x {n}" if n > n_drawn else ""
        which = f" {layer + 1}" if n_drawn > 1 else times
        drawing.frame(f"encoder {layer}", "Encoder", f"block{which}")
        how = "from both ends" if len(reader.children) > 1 else "from left to right"
        label = f"{CELLS[reader.variant].label}, {how}"
        is_many = n > n_drawn
        node = about(
            f"{label}{drawing.count(reader.path)}",
            reader,
            title=N_(
                "Encoder layer{words}: {title}",
                words=f"s 1 to {n}" if is_many else f" {layer + 1}",
                title=label,
            ),
            modules=drawing.modules(reader.path, n_blocks=n if is_many else 1),
        )
        drawing.below(reader.path, "attention", node)
        drawing.lines.append("}")
    drawing.memory = drawing.last
    _, last = part.outputs
    bridge = drawing.part("bridge")
    label = f"tanh of the last states{drawing.count('bridge')}"
    node = about(label, bridge, modules=drawing.modules("bridge"))
    drawing.below("bridge", "norm", node, shape=drawing.shape(last))


def decoder(drawing: Drawing, part: Part) -> None:
    """Draw the decoder with its attention, and the readout that both lead to."""
    words, token = drawing.shape(part.inputs[0]), drawing.last
    look = next(one for one in part.children if one.kind == "attention")
    score = ALIGNMENT_SCORES[look.variant]
    drawing.frame("decoder", "Decoder,", "token by token", below=True)
    label = f"{score.label} attention{drawing.count(look.path)}"
    attention = drawing.box(
        "attention", "cross", about(label, look, modules=drawing.modules(look.path))
    )
    n = drawing.sizes["n_layers"]
    label = CELLS[part.variant].label + (f" x {n}" if n > 1 else "")
    path = "decoder.steps"
    node = about(
        f"{label}{drawing.count(path)}",
        part,
        title=N_("Decoder: {title}", title=label),
        modules=drawing.modules(path),
    )
    steps = drawing.box("steps", "attention", node)
    label = f"tanh of state and context{drawing.count('readout')}"
    node = about(label, drawing.part("readout"), modules=drawing.modules("readout"))
    readout = drawing.box("readout", "feed-forward", node)
    drawing.lines.append("}")
    memory, state = drawing.part("encoder").outputs
    drawing.edge(drawing.memory, attention, f"memory {drawing.shape(memory)}")
    drawing.edge(token, steps, words)
    drawing.edge("bridge", steps, f"first state {drawing.shape(state)}")
    if score.asks_first:
        drawing.edge(attention, steps, "context of this step")
        drawing.edge(steps, attention, "state of the step before", dashed=True)
    else:
        drawing.edge(steps, attention, f"states {words}")
    drawing.edge(attention, readout, f"contexts {words}")
    drawing.edge(steps, readout, f"states {words}")
    drawing.last = readout
