"""Runs that come with the app, in ``runs/``: trained by this engine, kept as they were written.

``python -m tfm_core.recorded.build`` makes them anew.
"""

from tfm_core.sentences import N_

NAMES = (
    N_("A GPT of sentences, recorded"),
    N_("A GPT that adds, recorded"),
    N_("Attention sinks: softmax with a zero logit, recorded"),
    N_("Attention sinks: softmax, recorded"),
    N_("Copy, positions: alibi, recorded"),
    N_("Copy, positions: learned, recorded"),
    N_("Copy, positions: none, recorded"),
    N_("Copy, positions: rotary, recorded"),
    N_("Copy, positions: sinusoidal, recorded"),
    N_("Copy, positions: t5 bias, recorded"),
    N_("Digits, recorded"),
    N_("English to Korean, recorded"),
    N_("Grokking: no weight decay, recorded"),
    N_("Grokking: weight decay, recorded"),
    N_("Hidden spans (T5), recorded"),
    N_("Induction heads: one layer, fixed distance, recorded"),
    N_("Induction heads: one layer, recorded"),
    N_("Induction heads: two layers, recorded"),
    N_("Markov chains in context: one layer, recorded"),
    N_("Markov chains in context: two layers, recorded"),
    N_("Masked words, recorded"),
    N_("No causal mask, recorded"),
    N_("Pictures to words, recorded"),
    N_("Practice: augmented, recorded"),
    N_("Practice: no augmentation, recorded"),
    N_("Practice: stopped early, recorded"),
    N_("RNN, additive attention, recorded"),
    N_("Sentiment, recorded"),
    N_("Small translator, recorded"),
    N_("The notebook’s ViT, recorded"),
    N_("The smallest adder: a quarter of the size, recorded"),
    N_("The smallest adder: sees one column, recorded"),
    N_("The smallest adder: a quarter, minus one neuron, recorded"),
    N_("The smallest adder: the adder, recorded"),
    N_("Transformer, four heads, recorded"),
    N_("Transformer, one head, recorded"),
    N_("Wrong labels: right labels, recorded"),
    N_("Wrong labels: wrong labels, recorded"),
)
"""The names of the runs, for who translates them."""
