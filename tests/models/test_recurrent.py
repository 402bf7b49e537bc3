"""Recurrent models: the parts are PyTorch's own networks, and padding changes nothing."""

import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from tests.models.variants import TGT_WORDS, text_batch, text_model
from tfm_core.data.vocabulary import BOS
from tfm_core.models.recurrent import Reader, RecurrentEncoder

pytestmark = pytest.mark.quick

D, B, S, N = 10, 2, 7, 3
LENGTHS = torch.tensor([7, 4])
NETWORKS = {"lstm": nn.LSTM, "gru": nn.GRU}


@pytest.mark.parametrize("cell", NETWORKS)
@pytest.mark.parametrize("is_bidirectional", [True, False])
def test_the_encoder_is_pytorchs_network_on_packed_sequences(cell, is_bidirectional):
    torch.manual_seed(0)
    width = D // 2 if is_bidirectional else D
    readers = [Reader(cell, D, is_bidirectional=is_bidirectional) for _ in range(N)]
    theirs = NETWORKS[cell](
        D, width, num_layers=N, bidirectional=is_bidirectional, batch_first=True
    )
    for layer, reader in enumerate(readers):
        for direction, suffix in ((reader.onward, ""), (reader.back, "_reverse")):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh") if direction else ():
                source = getattr(direction, f"{name}_l0")
                getattr(theirs, f"{name}_l{layer}{suffix}").data.copy_(source)
    x = torch.randn(B, S, D, generator=torch.Generator().manual_seed(4))
    keep = torch.arange(S)[None] < LENGTHS[:, None]
    states, last = RecurrentEncoder(readers)(x, keep)
    packed = nn.utils.rnn.pack_padded_sequence(x, LENGTHS, batch_first=True)
    expected, final = theirs(packed)
    expected, _ = nn.utils.rnn.pad_packed_sequence(expected, batch_first=True)
    torch.testing.assert_close(states[keep], expected[keep], atol=1e-6, rtol=1e-5)
    hidden = final[0] if cell == "lstm" else final
    ends = torch.cat([hidden[-2], hidden[-1]], -1) if is_bidirectional else hidden[-1]
    torch.testing.assert_close(last, ends, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("cell", NETWORKS)
@pytest.mark.parametrize("n_layers", [1, 2])
def test_the_additive_decoder_steps_as_pytorchs_network_fed_with_its_contexts(cell, n_layers):
    model = text_model("recurrent", cell=cell, n_layers=n_layers).eval()
    theirs = NETWORKS[cell](24, 12, num_layers=n_layers, batch_first=True)
    if n_layers == 2:  # PyTorch's second layer reads the first one's state, as ours
        assert theirs.weight_ih_l1.shape == model.decoder.steps[1].weight_ih.shape
    for layer, step in enumerate(model.decoder.steps):
        for name, value in step.named_parameters():
            getattr(theirs, f"{name}_l{layer}").data.copy_(value)
    src, tgt = text_batch()
    source = model.encode(src)
    first = model.start(source)
    x = model.tgt_embedding(tgt)
    tops, contexts, after = model.decoder(x, source, first)
    begin = torch.stack(first.hidden)
    if cell == "lstm":
        begin = (begin, torch.zeros_like(begin))
    expected, end = theirs(torch.cat([x, contexts], -1), begin)
    torch.testing.assert_close(tops, expected, atol=1e-6, rtol=1e-5)
    hidden = end[0] if cell == "lstm" else end
    torch.testing.assert_close(torch.stack(after.hidden), hidden, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("cell", NETWORKS)
@pytest.mark.parametrize("attention", ["additive", "general"])
def test_going_on_from_a_state_gives_what_reading_all_again_gives(cell, attention):
    model = text_model("recurrent", cell=cell, attention=attention, n_layers=2).eval()
    src, tgt = text_batch()
    source = model.encode(src)
    whole, _ = model.decode(tgt, source)
    state, steps = None, []
    for token in tgt.split(1, 1):
        logits, state = model.decode(token, source, state)
        steps.append(logits)
    torch.testing.assert_close(torch.cat(steps, 1), whole, atol=1e-6, rtol=1e-5)


def test_queries_have_read_what_their_score_says_and_one_vocabulary_one_table():
    """Bahdanau's alignment asks with the state before the step, Luong's with the one after."""
    from tfm_core.probe.capture import capture

    src, tgt = text_batch()
    other = tgt.clone()
    other[0, 2] = 4 + (other[0, 2] - 3) % (TGT_WORDS - 4)
    for attention, first_changed in (("additive", 3), ("dot", 2)):
        model = text_model("recurrent", attention=attention).eval()
        maps = []
        for read in (tgt, other):
            with capture(model, only={"weights"}) as cache:
                model(src, read)
            maps.append(cache["decoder.cross_attention.weights"][0, 0])
        changed = (maps[0] - maps[1]).abs().amax(-1) > 1e-7
        assert changed.tolist() == [row >= first_changed for row in range(len(changed))]
    from tfm_core.choices.config import ConfigError, RecurrentConfig

    with pytest.raises(ConfigError, match="cannot be halved for two directions; use 8"):
        RecurrentConfig.parse({"d_model": 7})
    assert RecurrentConfig.parse({"d_model": 7, "is_bidirectional": False}).d_model == 7
    from tfm_core.choices.config import RecurrentConfig
    from tfm_core.choices.config.shape import TextShape
    from tfm_core.models.build import build_model

    model = build_model(RecurrentConfig(d_model=8), TextShape(17, 17, one_vocabulary=True))
    assert model.src_embedding is model.tgt_embedding
    out = model(torch.tensor([[4, 5]]), torch.tensor([[BOS]]))
    assert out.shape == (1, 1, 17)


IN_SMALLER_FORMATS = """
import torch
from tests.models.variants import text_batch, text_model
for attention in ("additive", "dot"):
    model = text_model("recurrent", cell="lstm", attention=attention)
    expected = model(*text_batch())
    for kind in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype=kind):
            found = model(*text_batch())
        found.float().sum().backward()
        torch.testing.assert_close(found.float(), expected, rtol=0.05, atol=0.05)
"""


@pytest.mark.wide
def test_lstms_run_on_a_cpu_that_has_no_kernel_for_smaller_formats():
    """Without AVX-512 oneDNN, which PyTorch asks, has none."""
    done = subprocess.run(
        [sys.executable, "-c", IN_SMALLER_FORMATS],
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
