"""Two recurrent networks and attention between them: ``forward(src, tgt_in) -> logits``.

The encoder reads the source token by token; the decoder writes the target token by token and, for
each token, attends to all states of the encoder (Bahdanau et al. 2015; Luong et al. 2015).

``src`` (B, S) and ``tgt_in`` (B, T) as for the Transformers: padding is ``pad_id`` on the right.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from tfm_core.choices.variants.record import resolve
from tfm_core.choices.variants.recurrent import CELLS
from tfm_core.layers import recorder
from tfm_core.layers.blocks import tokens_at
from tfm_core.layers.masks import check_source, is_token
from tfm_core.layers.recurrent import AttentionRead, EncodedSource, RecurrentAttention
from tfm_core.models.ends import Side, SpecialTokens


class State(NamedTuple):
    """The state of a decoder: hidden states, one (B, D) a layer; cells likewise, LSTM only."""

    hidden: tuple[Tensor, ...]
    cells: tuple[Tensor, ...] = ()


class Reader(nn.Module):
    """One recurrent layer of the encoder, in one direction or in both."""

    def __init__(self, cell: str, d_model: int, *, is_bidirectional: bool) -> None:
        """Two directions get half of ``d_model`` each."""
        super().__init__()
        width = d_model // 2 if is_bidirectional else d_model
        layer = resolve(CELLS[cell].sequence)
        self.onward = layer(d_model, width, batch_first=True)
        self.back = layer(d_model, width, batch_first=True) if is_bidirectional else None

    def forward(self, x: Tensor, turned: Tensor) -> Tensor:
        """Return states (B, S, d_model). turned: (B, S), the place of each token from the end.

        Padding is on the right either way, so it is read last and changes no real state.
        """
        states: Tensor = self.onward(x)[0]
        if self.back is None:
            return states
        from_end = recorder.changed(self.back, "output", self.back(tokens_at(x, turned))[0], x)
        return torch.cat([states, tokens_at(from_end, turned)], -1)


class RecurrentEncoder(nn.Module):
    """A stack of readers."""

    def __init__(self, layers: list[Reader], dropout: float = 0.0) -> None:
        """``dropout`` acts on what goes into each layer."""
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
        """Return states (B, S, d_model) and the last state of each direction, (B, d_model).

        x: (B, S, d_model); keep: bool (B, S), False = padding.
        """
        lengths = keep.sum(1, keepdim=True).clamp(min=1)  # (B, 1)
        positions = torch.arange(x.size(1), device=x.device)[None]
        turned = torch.where(positions < lengths, lengths - 1 - positions, positions)
        for layer in self.layers:
            x = layer(self.dropout(x), turned)
        ends = tokens_at(x, lengths - 1)[:, 0]  # where reading onward ended
        first = self.layers[0]
        assert isinstance(first, Reader)
        if first.back is not None:
            half = x.size(-1) // 2
            ends = torch.cat([ends[:, :half], x[:, 0, half:]], -1)
        recorder.record(self, read=x, ends=ends)
        return x, ends


class AdditiveDecoder(nn.Module):
    """Attends before each step; the context is an input of the cell (Bahdanau et al. 2015, A.2.2).

    Each step needs the state before it, so nothing here can be done for all tokens at once.
    """

    def __init__(
        self, cell: str, d_model: int, n_layers: int, attention: RecurrentAttention
    ) -> None:
        """The first cell reads the last token and the context, each of ``d_model``."""
        super().__init__()
        self.cross_attention = attention
        widths = [2 * d_model, *[d_model] * (n_layers - 1)]
        step = resolve(CELLS[cell].step)
        self.steps = nn.ModuleList(step(width, d_model) for width in widths)

    def forward(
        self, x: Tensor, source: EncodedSource, state: State
    ) -> tuple[Tensor, Tensor, State]:
        """Return states and contexts (B, T, d_model) for embedded tokens x, and the state after."""
        queries, looks, tops = [], [], []
        for token in x.unbind(1):
            queries.append(state.hidden[-1])
            looks.append(self.cross_attention(queries[-1][:, None], source))
            state = self._step(torch.cat([token, looks[-1].context[:, 0]], -1), state)
            tops.append(state.hidden[-1])
        if recorder.active():
            looked = AttentionRead(*(torch.cat(parts, 1) for parts in zip(*looks, strict=True)))
            self.cross_attention.record(torch.stack(queries, 1), source, looked)
        contexts = torch.cat([look.context for look in looks], 1)
        return torch.stack(tops, 1), contexts, state

    def _step(self, x: Tensor, state: State) -> State:
        hidden, cells = [], []
        for layer, step in enumerate(self.steps):
            if state.cells:
                x, memory = step(x, (state.hidden[layer], state.cells[layer]))
                cells.append(memory)
            else:
                x = step(x, state.hidden[layer])
            hidden.append(x)
        return State(tuple(hidden), tuple(cells))


class LuongDecoder(nn.Module):
    """Attends after each step; given the true target, all tokens do so at once."""

    def __init__(
        self, cell: str, d_model: int, n_layers: int, attention: RecurrentAttention
    ) -> None:
        """The recurrent layers read tokens only; the context joins behind them."""
        super().__init__()
        self.cross_attention = attention
        layer = resolve(CELLS[cell].sequence)
        self.steps = layer(d_model, d_model, num_layers=n_layers, batch_first=True)

    def forward(
        self, x: Tensor, source: EncodedSource, state: State
    ) -> tuple[Tensor, Tensor, State]:
        """See AdditiveDecoder."""
        hidden = torch.stack(state.hidden)
        if state.cells:
            tops, (hidden, cells) = self.steps(x, (hidden, torch.stack(state.cells)))
            after = State(hidden.unbind(0), cells.unbind(0))
        else:
            tops, hidden = self.steps(x, hidden)
            after = State(hidden.unbind(0))
        looked = self.cross_attention(tops, source)
        self.cross_attention.record(tops, source, looked)
        return tops, looked.context, after


class RecurrentTranslator(SpecialTokens, nn.Module):
    """Encoder, attention, decoder, and a readout of state and context together."""

    def __init__(
        self,
        source: Side[nn.Module, RecurrentEncoder],
        target: Side[nn.Module, AdditiveDecoder | LuongDecoder],
        *,
        bridge: nn.Linear,
        readout: nn.Linear,
        output: nn.Linear,
        pad_id: int | None,
        has_cells: bool,
        dropout: float = 0.0,
    ) -> None:
        """``bridge`` makes the decoder's first states; ``has_cells``: LSTM states have two parts.

        bridge: d_model to n_layers * d_model; readout: 2 * d_model to d_model.
        """
        super().__init__()
        self.src_embedding, self.tgt_embedding = source.embedding, target.embedding
        self.encoder, self.decoder, self.bridge = source.stack, target.stack, bridge
        self.readout, self.output = readout, output
        self.dropout = nn.Dropout(dropout)
        self.pad_id, self.has_cells = pad_id, has_cells

    def encode(self, src: Tensor) -> EncodedSource:
        """Read the source (B, S). Raises ValueError for an empty one, S = 0."""
        check_source(src)
        keep = is_token(src, self.pad_id)
        memory, last = self.encoder(self.src_embedding(src), keep)
        prepared = self.decoder.cross_attention.score.prepare(memory)
        return EncodedSource(memory, keep[:, None], prepared, last)

    def start(self, source: EncodedSource) -> State:
        """Return the state before the first token: s_0 = tanh(W h), Bahdanau et al. 2015, A.2.2."""
        first = recorder.changed(self.bridge, "output", self.bridge(source.last)).tanh()
        hidden = first.chunk(self.bridge.out_features // source.last.size(-1), -1)
        recorder.record(self.bridge, first=first)
        return State(hidden, tuple(map(torch.zeros_like, hidden)) if self.has_cells else ())

    def decode(
        self, tgt_in: Tensor, source: EncodedSource, state: State | None = None
    ) -> tuple[Tensor, State]:
        """Return logits (B, T, vocabulary) and the state after the last token.

        state: after the tokens before, so that each is read once; None begins a sentence.
        """
        x = self.dropout(self.tgt_embedding(tgt_in))
        tops, contexts, after = self.decoder(x, source, state or self.start(source))
        answering = self.readout(torch.cat([tops, contexts], -1)).tanh()
        out: Tensor = self.output(self.dropout(answering))
        recorder.record(self.decoder, tops=tops, contexts=contexts)
        recorder.record(self.output, answering=answering, logits=out)
        return out, after

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return logits (B, T, vocabulary)."""
        return self.decode(tgt_in, self.encode(src))[0]
