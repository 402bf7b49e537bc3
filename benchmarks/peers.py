"""Training steps of other implementations of the same models against ours.

Same sizes, equal numbers of parameters, equal weights and outputs, the same optimiser and batch.
``requirements-bench.txt`` names the packages; one that is missing is named and left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from benchmarks import peer_translator, peer_vits
from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Skipped, Table
from benchmarks.timing import measure, milliseconds, ratio, training_step

BATCH = 128
VIT_GOALS = {2: "ViT beside peers, 2 layers", 4: "ViT beside peers, 4 layers"}
"""Goals by number of layers."""
TRANSLATOR_GOAL = "beside nn.Transformer"
MARGIN = 1e-4
"""Largest difference of two logits that still counts as rounding."""


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Vision Transformers of two depths, then encoder-decoders."""
    rounds = 5 if quick else 40
    missing = [name for name in peer_vits.PEERS if not peer_vits.is_installed(name)]
    if missing:
        yield Skipped("Some peers", f"{', '.join(missing)} not installed (requirements-bench.txt).")
    for n_layers in VIT_GOALS:
        yield _vits(n_layers, rounds)
    yield _translators(rounds)


def n_parameters(model: nn.Module) -> int:
    """Count trained numbers."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def vit_contenders(n_layers: int) -> dict[str, nn.Module]:
    """Return ours and every installed peer with the weights of ours."""
    torch.manual_seed(0)
    mine = peer_vits.ours(n_layers)
    found: dict[str, nn.Module] = {"ours": mine}
    for name, peer in peer_vits.PEERS.items():
        if peer_vits.is_installed(name):
            found[name] = peer.equal(mine, n_layers)
            assert n_parameters(found[name]) == n_parameters(mine), name
    return found


def _vits(n_layers: int, rounds: int) -> Table:
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(BATCH, 1, 28, 28, generator=generator)
    labels = torch.randint(10, (BATCH,), generator=generator)
    models = vit_contenders(n_layers)
    with torch.no_grad():
        wanted = models["ours"].eval()(images)
        for model in models.values():
            torch.testing.assert_close(model.eval()(images), wanted, rtol=0, atol=MARGIN)
    steps = {name: training_step(model, (images,), labels) for name, model in models.items()}
    taken = measure(steps, rounds=rounds)
    best = min((milliseconds(taken[name]).median, name) for name in taken if name != "ours")[1]
    rows = []
    for name, seconds in taken.items():
        shown = ratio(taken["ours"], seconds)
        verdict = goal_cell(VIT_GOALS[n_layers], shown.median) if name == best else ""
        rows.append([name, milliseconds(seconds).show(), "" if name == "ours" else shown.show("x"),
                     verdict])  # fmt: skip
    return Table(
        f"Training step, ViT, 28x28, patch 7, d_model 64, {n_layers} layers, 4 heads, batch 128",
        ["", "CPU-ms a step", "ours takes", "target (the fastest peer)"],
        rows,
        [
            f"{n_parameters(models['ours']):,} parameters each, outputs equal to {MARGIN:g}.",
            f"{rounds} rounds.",
        ],
        {VIT_GOALS[n_layers]: Figure(ratio(taken["ours"], taken[best]).median)},
    )


def _translators(rounds: int) -> Table:
    torch.manual_seed(0)
    mine = peer_translator.ours()
    peer = peer_translator.TorchTranslator(mine)
    assert n_parameters(mine) == n_parameters(peer)
    src, tgt_in, tgt_out = peer_translator.batch()
    with torch.no_grad():
        torch.testing.assert_close(mine(src, tgt_in), peer(src, tgt_in), rtol=0, atol=MARGIN)
    ignore = peer_translator.PAD
    taken = measure(
        {
            "ours": training_step(mine, (src, tgt_in), tgt_out, ignore=ignore),
            "nn.Transformer": training_step(peer, (src, tgt_in), tgt_out, ignore=ignore),
        },
        rounds=rounds,
    )
    shown = ratio(taken["ours"], taken["nn.Transformer"])
    verdict = goal_cell(TRANSLATOR_GOAL, shown.median)
    return Table(
        "Training step, encoder-decoder, 1 + 1 layers, d_model 64, batch 64, 16 and 18 tokens",
        ["", "CPU-ms a step", "ours takes", "target"],
        [
            ["ours", milliseconds(taken["ours"]).show(), "", ""],
            ["nn.Transformer", milliseconds(taken["nn.Transformer"]).show(), shown.show("x"),
             verdict],
        ],
        [
            f"{n_parameters(mine):,} parameters each, outputs equal to {MARGIN:g}, with padding",
            f"and causal masks. {rounds} rounds.",
        ],
        {TRANSLATOR_GOAL: Figure(shown.median)},
    )  # fmt: skip
