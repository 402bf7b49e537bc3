"""The diagram of a recurrent model: two networks, and the attention between them."""

from __future__ import annotations

from tfm_core.anatomy import Part
from tfm_core.inspect.diagram.drawing import Blocks, Drawing
from tfm_core.sentences import N_
from tfm_core.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.variants.cells import CELLS


def encoder(drawing: Drawing, part: Part) -> None:
    """Draw the encoder, and what makes the decoder's first state of its last ones."""
    n = len(part.children)
    n_drawn = n if drawing.opened else 1
    for layer, reader in enumerate(part.children[:n_drawn]):
        is_folded = n > n_drawn
        which = f" {layer + 1}" if n_drawn > 1 else f" x {n}" if is_folded else ""
        drawing.frame(f"encoder {layer}", "Encoder", f"block{which}")
        how = "from both ends" if len(reader.children) > 1 else "from left to right"
        label = f"{CELLS[reader.variant].label}, {how}"
        words = f"s 1 to {n}" if is_folded else f" {layer + 1}"
        drawing.box(
            reader.path,
            "attention",
            label,
            reader,
            title=N_("Encoder layer{words}: {title}", words=words, title=label),
            paths=[reader.path],
            blocks=Blocks(n_paths=n if is_folded else 1),
        )
        drawing.lead(reader.path)
        drawing.lines.append("}")
    drawing.memory, (_, last) = drawing.last, part.outputs
    label, bridge = "tanh of the last states", drawing.part("bridge")
    drawing.lead(
        drawing.box("bridge", "norm", label, bridge, paths=["bridge"]), drawing.shape(last)
    )


def decoder(drawing: Drawing, part: Part) -> None:
    """Draw the decoder with its attention, and the readout that both lead to."""
    words, token = drawing.shape(part.inputs[0]), drawing.last
    asking = next(child for child in part.children if child.kind == "attention")
    score, n = ALIGNMENT_SCORES[asking.variant], drawing.number("n_layers")
    drawing.frame("decoder", "Decoder,", "token by token", below=True)
    label = f"{score.label} attention"
    attention = drawing.box("attention", "cross", label, asking, paths=[asking.path])
    label = CELLS[part.variant].label + (f" x {n}" if n != "1" else "")
    title = N_("Decoder: {title}", title=label)
    steps = drawing.box("steps", "attention", label, part, title=title, paths=["decoder.steps"])
    label, part = "tanh of state and context", drawing.part("readout")
    readout = drawing.box("readout", "feed-forward", label, part, paths=["readout"])
    drawing.lines.append("}")
    memory, state = drawing.part("encoder").outputs
    drawing.edge(drawing.memory, attention, f"memory {drawing.shape(memory)}")
    drawing.edge(token, steps, words)
    drawing.edge("bridge", steps, f"first state {drawing.shape(state)}")
    if score.attends_before_step:
        drawing.edge(attention, steps, "context of this step")
        drawing.edge(steps, attention, "state of the step before", dashed=True)
    else:
        drawing.edge(steps, attention, f"states {words}")
    drawing.edge(attention, readout, f"contexts {words}")
    drawing.edge(steps, readout, f"states {words}")
    drawing.last = readout
