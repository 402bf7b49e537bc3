"""Why a way may be slower than the plain one, and when to leave it: one sentence or two each."""

from __future__ import annotations

from pages.i18n import N_

WHY_SLOWER = {
    "attention": N_("On maps this small, the kernel's tiles cost more than storing the whole map."),
    "precision": N_(
        "This processor has no fast units for 16-bit products, so each one is converted "
        "there and back."
    ),
    "threads": N_(
        "Each operation is done before the other threads have started, and on a busy "
        "machine all wait for the last one."
    ),
    "data": N_("The examples are too few and too small for any gain."),
    "loops": N_("With one sequence and one head there is nothing to loop over."),
    "patches": N_("With one patch there is nothing to loop over."),
}

RULES = {
    "attention": N_(
        "**Leave it** when you want to see the weights: the fused call never has them as a whole. "
        "This app fuses while it trains and writes out while you look."
    ),
    "checkpointing": N_(
        "**Leave it** while everything fits into memory: then it only costs time. It "
        "buys larger batches and longer sequences."
    ),
    "precision": N_(
        "**Leave it** on a CPU without bf16 units. fp16 needs loss scaling, as here, lest small "
        "gradients become zero; bf16 does not, but rounds more coarsely."
    ),
    "batch": N_(
        "**Don't overdo it**: a batch twice as large is one update where there were two. Beyond "
        "the flat part it only makes fewer, smoother steps."
    ),
    "length": N_(
        "**It doesn't matter** for short sequences, where the other matrices dominate. From some "
        "hundred tokens on, fused attention is the difference between fitting and not."
    ),
    "threads": N_(
        "**Leave it at one** for small models and on shared machines; try more when "
        "matrices are hundreds wide."
    ),
    "data": N_(
        "**Use a DataLoader** when the data don't fit into memory, or need work that only the CPU "
        "can do; then with several workers."
    ),
    "loops": N_(
        "**Write the loop first** when it helps you think, and keep it as the test of the fast "
        "version, as here."
    ),
    "patches": N_(
        "**Write the loop first** when it helps you think, and keep it as the test of the fast "
        "version, as here."
    ),
    "gpu": N_(
        "**Stay on the CPU** below the crossing: for a small model the GPU waits most of the time."
    ),
    "compile": N_(
        "**Leave it** while you try things out: every change, and every new batch shape, "
        "compiles again. It is for long training runs of larger models, mostly on GPUs."
    ),
}
