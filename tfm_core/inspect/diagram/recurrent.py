"""The diagram of a recurrent model: two networks, and the attention between them."""

from __future__ import annotations

from tfm_core.config import RecurrentConfig
from tfm_core.inspect.diagram.drawing import Drawing
from tfm_core.inspect.diagram.inputs import embedded
from tfm_core.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.variants.cells import CELLS


def recurrent(
    drawing: Drawing, config: RecurrentConfig, src_len: int, tgt_len: int
) -> tuple[str, str]:
    """Draw everything up to the readout; return it and the shape that it hands on."""
    words = f"(B, {tgt_len}, {config.d_model})"
    memory, start = _encoder(drawing, config, src_len)
    token = embedded(drawing, "tgt", tgt_len)
    drawing.frame("decoder", "Decoder,", "token by token", below=True)
    score = ALIGNMENT_SCORES[config.attention]
    attention = drawing.node(
        "attention", f"{score.label} attention{drawing.count('decoder.cross_attention')}", "cross"
    )
    cell = CELLS[config.cell].label
    times = f" x {config.n_layers}" if config.n_layers > 1 else ""
    steps = drawing.node("steps", f"{cell}{times}{drawing.count('decoder.steps')}", "attention")
    readout = drawing.node(
        "readout", f"tanh of state and context{drawing.count('readout')}", "feed-forward"
    )
    drawing.lines.append("}")
    drawing.edge(memory, attention, f"memory (B, {src_len}, {config.d_model})")
    drawing.edge(token, steps, words)
    drawing.edge(start, steps, f"first state (B, {config.d_model})")
    if score.asks_first:
        drawing.edge(attention, steps, "context of this step")
        drawing.edge(steps, attention, "state of the step before", dashed=True)
    else:
        drawing.edge(steps, attention, f"states {words}")
    drawing.edge(attention, readout, f"contexts {words}")
    drawing.edge(steps, readout, f"states {words}")
    return readout, words


def _encoder(drawing: Drawing, config: RecurrentConfig, src_len: int) -> tuple[str, str]:
    """Draw the encoder; return its last layer and what makes the decoder's first state."""
    cell, width = CELLS[config.cell].label, f"(B, {src_len}, {config.d_model})"
    x = embedded(drawing, "src", src_len)
    n = config.n_layers if drawing.opened else 1
    for layer in range(n):
        times = f" x {config.n_layers}" if config.n_layers > n else ""
        which = f" {layer + 1}" if n > 1 else times
        drawing.frame(f"encoder {layer}", "Encoder", f"block{which}")
        how = "from both ends" if config.is_bidirectional else "from left to right"
        count = drawing.count(f"encoder.layers.{layer}")
        node = drawing.node(f"encoder.layers.{layer}", f"{cell}, {how}{count}", "attention")
        drawing.lines.append("}")
        drawing.edge(x, node, width)
        x = node
    start = drawing.node("bridge", f"tanh of the last states{drawing.count('bridge')}", "norm")
    drawing.edge(x, start, f"(B, {config.d_model})")
    return x, start
