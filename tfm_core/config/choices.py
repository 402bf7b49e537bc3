"""The named variants that a config can pick, with the words the app shows for them.

The names are the contract; the classes behind them are found in ``tfm_core.layers`` and
``tfm_core.training``, in dictionaries with the same keys (a test holds the two together).
"""

from typing import Annotated

from tfm_core.config.base import Choice, OneOf
from tfm_core.sentences import N_

UNITS: dict[str, Choice] = {
    "words": Choice(
        N_("Words"), N_("Words, signs and line breaks: few steps, a large vocabulary.")
    ),
    "characters": Choice(
        N_("Characters"), N_("Letters and signs: a small vocabulary, many steps.")
    ),
}
UnitName = Annotated[str, OneOf(UNITS)]

CELLS: dict[str, Choice] = {
    "lstm": Choice(
        N_("LSTM"), N_("Three gates and a separate memory (Hochreiter & Schmidhuber 1997).")
    ),
    "gru": Choice(
        N_("GRU"), N_("Two gates, no separate memory, a quarter cheaper (Cho et al. 2014).")
    ),
}
CellName = Annotated[str, OneOf(CELLS)]

RECURRENT_ATTENTIONS: dict[str, Choice] = {
    "additive": Choice(
        N_("Additive"),
        N_("v tanh(W s + U h), asked before each step (Bahdanau, Cho & Bengio 2015)."),
    ),
    "dot": Choice(
        N_("Dot product"), N_("s h, asked after each step (Luong, Pham & Manning 2015).")
    ),
    "general": Choice(N_("General"), N_("s W h: a matrix between the two (Luong et al. 2015).")),
    "concat": Choice(
        N_("Concat"), N_("v tanh(W [s; h]), asked after each step (Luong et al. 2015).")
    ),
}
RecurrentAttentionName = Annotated[str, OneOf(RECURRENT_ATTENTIONS)]

LANGUAGES: dict[str, Choice] = {
    "english": Choice(N_("English"), N_("“a three above a seven”: each number with its article.")),
    "korean": Choice(N_("Korean"), N_("“삼은 칠 위에 있다”: the verb last, particles that agree.")),
}
LanguageName = Annotated[str, OneOf(LANGUAGES)]
