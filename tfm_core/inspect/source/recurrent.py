"""The generated file of a recurrent model: exactly one cell, one attention, no branch left."""

from __future__ import annotations

from textwrap import dedent, indent

from tfm_core.config import RecurrentConfig
from tfm_core.config.shape import TextShape
from tfm_core.inspect.source.embedding import TOKEN_EMBEDDING
from tfm_core.inspect.source.parts import kept
from tfm_core.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.variants.cells import CELLS

SECTIONS = ("embedding", "encoder", "attention", "decoder", "model")


def title(config: RecurrentConfig) -> str:
    """Return what the file says of itself."""
    cell, score = CELLS[config.cell].label, ALIGNMENT_SCORES[config.attention].label.lower()
    return (
        f"{cell} encoder and decoder of {config.d_model}, {score} attention: exactly one "
        "configuration.\n\nB batch, S source tokens, T target tokens. Needs torch only."
    )


def constants(config: RecurrentConfig, shape: TextShape) -> dict[str, object]:
    """Return the names and values that stand at the top of the file."""
    values: dict[str, object] = {"D_MODEL": config.d_model}
    if config.is_bidirectional:
        values["HALF"] = config.d_model // 2
    values["N_LAYERS"] = config.n_layers
    if config.dropout:
        values["DROPOUT"] = config.dropout
    words = {"SRC_WORDS": shape.src_vocabulary, "TGT_WORDS": shape.tgt_vocabulary}
    return values | words | ({} if shape.pad_id is None else {"PAD": shape.pad_id})


PLACED = dedent('''\
    def placed(x, positions):
        """Of x (B, S, D) the rows at positions (B, N): (B, N, D)."""
        return x.gather(1, positions[..., None].expand(-1, -1, x.size(-1)))
    ''')


def section(config: RecurrentConfig, shape: TextShape, name: str) -> str:
    """Return the source of one of SECTIONS, as it stands in the file."""
    if name == "embedding":
        return TOKEN_EMBEDDING
    if name == "encoder":
        return f"{_reader(config)}\n\n{_encoder(config)}"
    if name == "attention":
        return _attention(config)
    if name == "decoder":
        return (
            _additive(config) if ALIGNMENT_SCORES[config.attention].asks_first else _luong(config)
        )
    return _model(config, shape)


def _reader(config: RecurrentConfig) -> str:
    kind = f"nn.{CELLS[config.cell].class_name}"
    if not config.is_bidirectional:
        return dedent(f'''\
            class Reader(nn.Module):
                """One recurrent layer that reads from left to right."""

                def __init__(self):
                    super().__init__()
                    self.onward = {kind}(D_MODEL, D_MODEL, batch_first=True)

                def forward(self, x, turned):
                    return self.onward(x)[0]
            ''')
    return dedent(f'''\
        class Reader(nn.Module):
            """One recurrent layer; half of the width reads from the end."""

            def __init__(self):
                super().__init__()
                self.onward = {kind}(D_MODEL, HALF, batch_first=True)
                self.back = {kind}(D_MODEL, HALF, batch_first=True)

            def forward(self, x, turned):
                from_end = self.back(placed(x, turned))[0]
                return torch.cat([self.onward(x)[0], placed(from_end, turned)], -1)
        ''')


def _encoder(config: RecurrentConfig) -> str:
    init = ["self.layers = nn.ModuleList(Reader() for _ in range(N_LAYERS))"]
    init += ["self.dropout = nn.Dropout(DROPOUT)"] if config.dropout else []
    x = "self.dropout(x)" if config.dropout else "x"
    lines = [
        "lengths = keep.sum(1, keepdim=True).clamp(min=1)",
        "positions = torch.arange(x.size(1), device=x.device)[None]",
        "turned = torch.where(positions < lengths, lengths - 1 - positions, positions)",
        "for layer in self.layers:",
        f"    x = layer({x}, turned)",
        "ends = placed(x, lengths - 1)[:, 0]  # padding is read last: it changes no real state",
    ]
    if config.is_bidirectional:
        lines.append("ends = torch.cat([ends[:, :HALF], x[:, 0, HALF:]], -1)")
    lines.append("return x, ends  # (B, S, D_MODEL), (B, D_MODEL)")
    return _module(
        "Encoder", "Reads the source; keeps a state for each word.", init,
        ("def forward(self, x, keep):", lines),
    )  # fmt: skip


def _attention(config: RecurrentConfig) -> str:
    chosen = ALIGNMENT_SCORES[config.attention]
    score = _module(
        "Score", chosen.help, list(chosen.modules),
        ("def prepare(self, memory):", [f"return {chosen.prepared}  # once for all target tokens"]),
        ("def forward(self, states, prepared):", list(chosen.scores)),
    )  # fmt: skip
    attend = _module(
        "Attention", "Softmax over the source, and the mean of its states in those proportions.",
        ["self.score = Score()"],
        ("def forward(self, states, source):",
         ["memory, mask, prepared, last = source",
          "scores = self.score(states, prepared).masked_fill(~mask, -1e9)",
          "weights = scores.softmax(-1)  # (B, T, S), every row adds up to 1",
          "return weights @ memory, weights  # (B, T, D_MODEL)"]),
    )  # fmt: skip
    return f"{score}\n\n{attend}"


def _additive(config: RecurrentConfig) -> str:
    cell, deeper = CELLS[config.cell], config.n_layers > 1
    kind = f"nn.{cell.step.partition(':')[2]}"
    cells = f"[{kind}(2 * D_MODEL, D_MODEL)]"
    if deeper:
        cells = f"{cells}\n    + [{kind}(D_MODEL, D_MODEL) for _ in range(N_LAYERS - 1)]\n"
    step = (
        ["hidden[i], cells[i] = step(x, (hidden[i], cells[i]))"]
        if cell.has_memory
        else ["hidden[i] = step(x, hidden[i])"]
    )
    start = ["hidden = list(first)"]
    start += ["cells = [torch.zeros_like(h) for h in first]"] if cell.has_memory else []
    lines = [
        *start,
        "tops, contexts, looks = [], [], []",
        "for token in x.unbind(1):  # each step needs the one before it",
        "    context, weights = self.cross_attention(hidden[-1][:, None], source)",
        "    x = torch.cat([token, context[:, 0]], -1)",
        "    for i, step in enumerate(self.steps):",
        *(f"        {line}" for line in step),
        "        x = hidden[i]",
        "    tops.append(x)",
        "    contexts.append(context)",
        "    looks.append(weights)",
        "return torch.stack(tops, 1), torch.cat(contexts, 1), torch.cat(looks, 1)",
    ]
    init = ["self.cross_attention = Attention()", f"self.steps = nn.ModuleList({cells})"]
    return _module(
        "Decoder", "Asks first, then steps: the context goes into the cell.", init,
        ("def forward(self, x, source, first):", lines),
    )  # fmt: skip


def _luong(config: RecurrentConfig) -> str:
    kind = f"nn.{CELLS[config.cell].class_name}"
    lines = ["hidden = torch.stack(first)", "tops = self.steps(x, hidden)[0]"]
    if CELLS[config.cell].has_memory:
        lines[1] = "tops = self.steps(x, (hidden, torch.zeros_like(hidden)))[0]"
    lines.append("return tops, *self.cross_attention(tops, source)")
    return _module(
        "Decoder", "Steps first, then asks: all target tokens at once.",
        ["self.cross_attention = Attention()",
         f"self.steps = {kind}(D_MODEL, D_MODEL, num_layers=N_LAYERS, batch_first=True)"],
        ("def forward(self, x, source, first):", lines),
    )  # fmt: skip


def _model(config: RecurrentConfig, shape: TextShape) -> str:
    tgt = "self.src_embedding" if shape.one_vocabulary else "TokenEmbedding(TGT_WORDS)"
    bias = "" if shape.output_bias else ", bias=False"
    drop = (lambda x: f"self.dropout({x})") if config.dropout else (lambda x: x)
    init = [
        "self.src_embedding = TokenEmbedding(SRC_WORDS)",
        f"self.tgt_embedding = {tgt}",
        "self.encoder = Encoder()",
        "self.decoder = Decoder()",
        "self.bridge = nn.Linear(D_MODEL, N_LAYERS * D_MODEL)",
        "self.readout = nn.Linear(2 * D_MODEL, D_MODEL, bias=False)",
        f"self.output = nn.Linear(D_MODEL, TGT_WORDS{bias})",
    ]
    init += ["self.dropout = nn.Dropout(DROPOUT)"] if config.dropout else []
    encode = [
        f"keep = {kept('src', shape.pad_id)}",
        "memory, last = self.encoder(self.src_embedding(src), keep)",
        "prepared = self.decoder.cross_attention.score.prepare(memory)",
        "return memory, keep[:, None], prepared, last",
    ]
    forward = [
        "source = self.encode(src)",
        "first = self.bridge(source[-1]).tanh().chunk(N_LAYERS, -1)  # the decoder's first states",
        f"x = {drop('self.tgt_embedding(tgt_in)')}",
        "tops, contexts, weights = self.decoder(x, source, first)",
        "x = self.readout(torch.cat([tops, contexts], -1)).tanh()",
        f"answer = self.output({drop('x')})  # (B, T, TGT_WORDS)",
        'return (answer, {"decoder.cross_attention": weights}) if return_weights else answer',
    ]
    return _module(
        "Model", "Two recurrent networks, and attention between them.", init,
        ("def encode(self, src):", encode),
        ("def forward(self, src, tgt_in, return_weights=False):", forward),
    )  # fmt: skip


def _module(name: str, doc: str, init: list[str], *methods: tuple[str, list[str]]) -> str:
    """Return the source of a module: its docstring, what it holds, and its methods."""
    parts = [f'class {name}(nn.Module):\n    """{doc}"""\n']
    if init:
        body = "\n".join(["super().__init__()", *init])
        parts.append(indent(f"def __init__(self):\n{indent(body, '    ')}\n", "    "))
    for signature, lines in methods:
        body = indent("\n".join(lines), "    ")
        parts.append(indent(f"{signature}\n{body}\n", "    "))
    return "\n".join(parts)
