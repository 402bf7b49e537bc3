"""The diagram of a recurrent model: two networks, and the attention between them."""

from __future__ import annotations

from tfm_core.anatomy import Part
from tfm_core.choices.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.choices.variants.cells import CELLS
from tfm_core.inspect.diagram.blocks import STACKS
from tfm_core.inspect.diagram.drawing import Blocks, Drawing
from tfm_core.sentences import N_


def encoder(drawing: Drawing, part: Part) -> None:
    """Draw the encoder, and what makes the decoder's first state of its last ones."""
    n = len(part.children)
    n_drawn = n if drawing.opened else 1
    for layer, reader in enumerate(part.children[:n_drawn]):
        is_folded = n > n_drawn
        which = N_("block {n}", n=layer + 1) if n_drawn > 1 else N_("block")
        which = N_("block x {n}", n=n) if is_folded else which
        drawing.frame(f"encoder {layer}", STACKS["encoder"], which)
        cell = CELLS[reader.variant].label
        both = len(reader.children) > 1
        label = (
            N_("{cell}, from both ends", cell=cell)
            if both
            else N_("{cell}, from left to right", cell=cell)
        )
        title = (
            N_("Encoder layers 1 to {n}: {title}", n=n, title=label)
            if is_folded
            else N_("Encoder layer {n}: {title}", n=layer + 1, title=label)
        )
        drawing.box(
            reader.path,
            "attention",
            label,
            reader,
            title=title,
            paths=[reader.path],
            blocks=Blocks(n_paths=n if is_folded else 1),
        )
        drawing.lead(reader.path)
        drawing.lines.append("}")
    drawing.memory, (_, last) = drawing.last, part.outputs
    label, bridge = N_("tanh of the last states"), drawing.part("bridge")
    drawing.lead(
        drawing.box("bridge", "norm", label, bridge, paths=["bridge"]), drawing.shape(last)
    )


def decoder(drawing: Drawing, part: Part) -> None:
    """Draw the decoder with its attention, and the readout that both lead to."""
    words, token = drawing.shape(part.inputs[0]), drawing.last
    asking = next(child for child in part.children if child.kind == "attention")
    score, n = ALIGNMENT_SCORES[asking.variant], drawing.number("n_layers")
    drawing.frame("decoder", N_("Decoder,"), N_("token by token"), below=True)
    label: str = N_("{score} attention", score=score.label)
    attention = drawing.box("attention", "cross", label, asking, paths=[asking.path])
    label = CELLS[part.variant].label
    label = N_("{cell} x {n}", cell=label, n=n) if n != "1" else label
    title = N_("Decoder: {title}", title=label)
    steps = drawing.box("steps", "attention", label, part, title=title, paths=["decoder.steps"])
    label, part = N_("tanh of state and context"), drawing.part("readout")
    readout = drawing.box("readout", "feed-forward", label, part, paths=["readout"])
    drawing.lines.append("}")
    memory, state = drawing.part("encoder").outputs
    drawing.edge(drawing.memory, attention, N_("memory {shape}", shape=drawing.shape(memory)))
    drawing.edge(token, steps, words)
    drawing.edge("bridge", steps, N_("first state {shape}", shape=drawing.shape(state)))
    if score.attends_before_step:
        drawing.edge(attention, steps, N_("context of this step"))
        drawing.edge(steps, attention, N_("state of the step before"), dashed=True)
    else:
        drawing.edge(steps, attention, N_("states {shape}", shape=words))
    drawing.edge(attention, readout, N_("contexts {shape}", shape=words))
    drawing.edge(steps, readout, N_("states {shape}", shape=words))
    drawing.last = readout
