"""Mistakes that people make in the code of a Transformer, one record each.

A mistake is an intervention on a healthy model; its record also says what generated code,
equations, pictures and walks change with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from tfm_core.choices.variants.forms import (
    ATTENTION,
    FEED_FORWARD,
    Causality,
    Projections,
    Residual,
    Scale,
)
from tfm_core.choices.variants.record import Named, Registry, Variant, resolve
from tfm_core.sentences import N_, Paragraph

if TYPE_CHECKING:
    from torch import Tensor, nn

MistakePlace = Literal["block", "decoder", "training"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake(Variant):
    """One mistake: its words, how to make it, what it changes, and how to find it.

    place: where a configuration can ask for it: the blocks of any Transformer, a decoder, or
    training; None for one that only lessons show. short: the name of a run with it. probe: the
    measurement of ``tfm_core.studies.bugs`` that finds it, if any. right, wrong: the correct and
    the mistaken line of code.

    apply: the name of what makes it in a healthy model, or in a part of one, in place; idempotent.
    form: replaces the healthy form, such as a ``Residual``, in equations, pictures, walks and
    generated code. changes_attention_weights: whether attention has other weights. refusal: why the
    settings of a model leave no place for it, or None.

    loss_input: what the loss gets in place of logits (N, classes), from 0 to 1; loss_code: the same
    as code. labels: the targets (B, T) from ids (B, T + 1); labels_code: the same as code.
    """

    room: ClassVar[str] = "choices/mistakes"
    place: MistakePlace | None
    short: str = field(init=False)
    probe: str | None
    right: str | None = None
    wrong: str | None = None
    apply: str | None = None
    form: Named | None = None
    changes_attention_weights: bool = False
    refusal: Callable[[Any], str | None] | None = None
    loss_input: Callable[[Tensor], Tensor] | None = None
    loss_code: str | None = None
    labels: Callable[[Tensor], Tensor] | None = None
    labels_code: str | None = None

    @property
    def settings(self) -> Mapping[str, tuple[str, ...]]:
        """Return the settings that make it: ``section.field`` -> value."""
        section = "training" if self.place == "training" else "model"
        return {f"{section}.mistakes": (self.name,)}

    def excludes(self, other: Mistake) -> bool:
        """Return whether the two cannot be made together: each gives the same part another form."""
        have_forms = self.form is not None and type(self.form) is type(other.form)
        return have_forms or None not in (self.loss_input, other.loss_input)


F = TypeVar("F", bound=Named)


# ---- in masks: the causal mask, and that of padding

NO_CAUSAL_MASK = Mistake(
    name="no-causal-mask",
    source="Vaswani et al. 2017, section 3.2.3, without the mask",
    place="decoder",
    apply="tfm_core.choices.mistakes.parts:unmask",
    form=Causality(
        name="none",
        sees_past=True,
        sees_future=True,
        note="no causal mask",
        rule=lambda window: rf"|i - j| \le {window}" if window else None,
        function="unmasked",
        cut=None,
        says="a query sees every key, later ones too",
    ),
    probe="sight",
)
MASK_TRANSPOSED = Mistake(
    name="mask-transposed",
    source="Vaswani et al. 2017, section 3.2.3, with keys and queries swapped in the mask",
    place="decoder",
    apply="tfm_core.choices.mistakes.parts:transpose_mask",
    form=Causality(
        name="transposed",
        sees_past=False,
        sees_future=True,
        note="causal mask transposed",
        rule=lambda window: rf"i \le j \le i + {window}" if window else r"j \ge i",
        function="transposed",
        cut=".triu()",
        says="a query sees itself and the later keys",
    ),
    probe="sight",
)


PADDING_ON_QUERIES = Mistake(
    name="padding-on-queries",
    source="Vaswani et al. 2017, section 3.2.1, with keys and queries swapped in the padding mask",
    place=None,
    right="scores.masked_fill(~keep[:, None, None, :], -inf)  # keep: (B, K)",
    wrong="scores.masked_fill(~keep[:, None, :, None], -inf)",
    apply="tfm_core.choices.mistakes.parts:mask_padded_queries",
    probe=None,
)
FLOAT_MASK = Mistake(
    name="float-mask",
    source="torch.nn.functional.scaled_dot_product_attention, attn_mask of type float",
    place=None,
    right="F.scaled_dot_product_attention(q, k, v, torch.ones(T, T).tril().bool())",
    wrong="F.scaled_dot_product_attention(q, k, v, torch.ones(T, T).tril())  # added to the scores",
    apply="tfm_core.choices.mistakes.parts:add_masks",
    probe=None,
)


# ---- in a block: residual connections, norms and dropout


def _without_pre_norm(config: Any) -> str | None:
    if config.has_norms and config.norm_first:
        return None
    if config.has_norms:
        return Paragraph("mistakes/residual-needs-pre-norm")
    return Paragraph("mistakes/residual-needs-norm")


def _without_feed_forward(config: Any) -> str | None:
    if config.has_feed_forward:
        return None
    return N_("This mistake needs a feed-forward layer: choose d_ff above 0.")


_NONE = Residual(
    name="none",
    source="Vaswani et al. 2017, section 3.1, without the sum",
    has_sum=False,
    normed=frozenset(),
)
_FROM_NORMED = Residual(
    name="from-normed",
    source="Xiong et al. 2020, with x overwritten by norm(x)",
    has_sum=True,
    normed=frozenset((ATTENTION, FEED_FORWARD)),
)
_FEED_FORWARD_FROM_NORMED = Residual(
    name="feed-forward-from-normed",
    source="Xiong et al. 2020, with x overwritten by norm(x) before the feed-forward layer",
    has_sum=True,
    normed=frozenset((FEED_FORWARD,)),
)

NO_RESIDUALS = Mistake(
    name="no-residuals",
    source=_NONE.source,
    place="block",
    apply="tfm_core.choices.mistakes.parts:leave_out_residuals",
    form=_NONE,
    probe="growth",
)
RESIDUAL_FROM_NORMED = Mistake(
    name="residual-from-normed",
    source=_FROM_NORMED.source,
    place="block",
    right="x = x + self.mlp(self.norm2(x))",
    wrong="x = self.norm2(x)\nx = x + self.mlp(x)  # x is gone: the norm is added",
    apply="tfm_core.choices.mistakes.parts:add_normed",
    form=_FROM_NORMED,
    refusal=_without_pre_norm,
    probe="growth",
)
FEED_FORWARD_RESIDUAL_FROM_NORMED = Mistake(
    name="feed-forward-residual-from-normed",
    source=_FEED_FORWARD_FROM_NORMED.source,
    place="block",
    right="x = x + self.attention(self.norm1(x))\nx = x + self.mlp(self.norm2(x))",
    wrong="x = x + self.attention(self.norm1(x))\nx = self.norm2(x)\nx = x + self.mlp(x)",
    apply="tfm_core.choices.mistakes.parts:add_normed_before_feed_forward",
    form=_FEED_FORWARD_FROM_NORMED,
    refusal=lambda config: _without_feed_forward(config) or _without_pre_norm(config),
    probe="growth",
)


def _without_norms(config: Any) -> str | None:
    if config.has_norms:
        return None
    return Paragraph("mistakes/shared-norm-needs-norm")


SHARED_NORM = Mistake(
    name="shared-norm",
    source="Vaswani et al. 2017, section 3.1, with one norm a block",
    place="block",
    right="self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)",
    wrong="self.norm = nn.LayerNorm(d_model)  # used after attention and after feed-forward",
    apply="tfm_core.choices.mistakes.parts:share_norms",
    refusal=lambda config: _without_feed_forward(config) or _without_norms(config),
    probe="numbers",
)


DROPOUT_AFTER_NORM = Mistake(
    name="dropout-after-norm",
    source="Vaswani et al. 2017, section 5.4, with dropout applied to the output of the norm",
    place=None,
    right="x = self.norm(x + self.dropout(sublayer(x)))",
    wrong="x = self.dropout(self.norm(x + sublayer(x)))",
    apply="tfm_core.choices.mistakes.parts:drop_after_norms",
    probe=None,
)


SAMPLE_DEVIATION = Mistake(
    name="sample-deviation",
    source="Ba et al. 2016, Eq. 3, with Bessel's correction",
    place=None,
    right="x = (x - x.mean(-1, True)) / (x.var(-1, correction=0, keepdim=True) + eps).sqrt()",
    wrong="x = (x - x.mean(-1, True)) / (x.var(-1, keepdim=True) + eps).sqrt()",
    apply="tfm_core.choices.mistakes.parts:divide_by_sample_deviation",
    probe=None,
)


# ---- in attention: the scale of scores, its matrices, the split into heads

_UNSCALED = Scale(
    name="none", source="Vaswani et al. 2017, section 3.2.1, without the division", width=None
)
SQRT_D_MODEL = Scale(
    name="sqrt-d-model",
    source="Vaswani et al. 2017, section 3.2.1, with d_model for d_k",
    width="d_model",
)

NO_SCALE = Mistake(
    name="no-scale",
    source=_UNSCALED.source,
    place="block",
    apply="tfm_core.choices.mistakes.parts:leave_undivided",
    form=_UNSCALED,
    probe="attention",
)
SCALED_BY_D_MODEL = Mistake(
    name="scaled-by-d-model",
    source=SQRT_D_MODEL.source,
    place="block",
    apply="tfm_core.choices.mistakes.parts:divide_by_d_model",
    form=SQRT_D_MODEL,
    probe="attention",
)


NO_OUTPUT_PROJECTION = Mistake(
    name="no-output-projection",
    source="Vaswani et al. 2017, section 3.2.2, without W_O",
    place="block",
    right="return self.W_O(heads.transpose(1, 2).reshape(B, T, d_model))",
    wrong="return heads.transpose(1, 2).reshape(B, T, d_model)",
    apply="tfm_core.choices.mistakes.parts:leave_out_output",
    form=Projections(name="no-output", has_output=False, is_sliced=False),
    changes_attention_weights=True,
    probe="mixing",
)
SLICED_HEADS = Mistake(
    name="sliced-heads",
    source="Vaswani et al. 2017, section 3.2.2, with block-diagonal matrices and without W_O",
    place="block",
    right="q = self.W_Q(x).view(B, T, n_heads, d_head)  # W_Q: d_model x d_model",
    wrong="q = self.W_Q[h](x[:, :, h * d_head : (h + 1) * d_head])  # W_Q[h]: d_head x d_head",
    apply="tfm_core.choices.mistakes.parts:slice_heads",
    form=Projections(name="sliced", has_output=False, is_sliced=True),
    changes_attention_weights=True,
    probe="mixing",
)


KEYS_AT_QUERY_LENGTH = Mistake(
    name="keys-at-query-length",
    source="Vaswani et al. 2017, section 3.2.2, with one length for queries and keys",
    place=None,
    right="k = self.W_K(memory).view(B, S, n_heads, d_head)",
    wrong="k = self.W_K(memory).view(B, T, n_heads, d_head)  # T: the length of the queries",
    apply="tfm_core.choices.mistakes.parts:split_at_query_length",
    probe=None,
)


LINEAR_SCORE = Mistake(
    name="linear-score",
    source="Bahdanau et al. 2015, appendix A.1.2, without the tanh",
    place=None,
    right="score = v(torch.tanh(W(s) + U(h)))",
    wrong="score = Linear(torch.cat([s, h], -1))  # the part of s is equal for all h",
    apply="tfm_core.choices.mistakes.parts:straighten_scores",
    probe=None,
)


# ---- in the loss; the model itself is healthy


def _probabilities(logits: Tensor) -> Tensor:
    return logits.softmax(-1)


def _cut_off(logits: Tensor) -> Tensor:
    """Return the predicted classes, one-hot, as a new leaf: no gradient reaches the logits."""
    from torch import nn

    return nn.functional.one_hot(logits.argmax(-1), logits.size(-1)).float().requires_grad_()


def _with_scaled_gradients(training: Any) -> str | None:
    if training.precision != "fp16":
        return None
    return Paragraph("mistakes/argmax-with-fp16")


def _unshifted(ids: Tensor) -> Tensor:
    return ids[:, :-1]


SOFTMAX_BEFORE_LOSS = Mistake(
    name="softmax-before-loss",
    source="torch.nn.functional.cross_entropy, called on logits.softmax(-1)",
    place="training",
    right="F.cross_entropy(logits, targets)",
    wrong="F.cross_entropy(logits.softmax(-1), targets)  # it takes logits",
    loss_input=_probabilities,
    loss_code="logits.softmax(-1)",
    probe="gradients",
)
ARGMAX_BEFORE_LOSS = Mistake(
    name="argmax-before-loss",
    source="torch.Tensor.requires_grad_, called on logits.argmax(-1).float()",
    place="training",
    right="loss = F.cross_entropy(logits, targets)",
    wrong="predicted = logits.argmax(-1).float().requires_grad_()\n"
    "loss = F.cross_entropy(predicted, targets.float())",
    loss_input=_cut_off,
    loss_code="F.one_hot(logits.argmax(-1), logits.size(-1)).float().requires_grad_()",
    refusal=_with_scaled_gradients,
    probe="gradients",
)
TARGET_NOT_SHIFTED = Mistake(
    name="target-not-shifted",
    source="Vaswani et al. 2017, section 3.1, without the offset by one position",
    place="training",
    right="loss = F.cross_entropy(model(src, tgt[:, :-1]), tgt[:, 1:])",
    wrong="loss = F.cross_entropy(model(src, tgt[:, :-1]), tgt[:, :-1])",
    labels=_unshifted,
    labels_code="tgt[:, :-1]",
    probe="gradients",
)


MISTAKES = Registry(
    "mistake",
    NO_CAUSAL_MASK,
    MASK_TRANSPOSED,
    NO_RESIDUALS,
    RESIDUAL_FROM_NORMED,
    FEED_FORWARD_RESIDUAL_FROM_NORMED,
    SHARED_NORM,
    NO_OUTPUT_PROJECTION,
    SLICED_HEADS,
    NO_SCALE,
    SCALED_BY_D_MODEL,
    SOFTMAX_BEFORE_LOSS,
    ARGMAX_BEFORE_LOSS,
    TARGET_NOT_SHIFTED,
    PADDING_ON_QUERIES,
    FLOAT_MASK,
    KEYS_AT_QUERY_LENGTH,
    DROPOUT_AFTER_NORM,
    SAMPLE_DEVIATION,
    LINEAR_SCORE,
)


def made_in(*places: MistakePlace) -> Registry[Mistake]:
    """Return the mistakes that a configuration can ask for in some places."""
    names = (name for name, mistake in MISTAKES.items() if mistake.place in places)
    return MISTAKES.only(*names)


def forms(kind: type[F]) -> tuple[F, ...]:
    """Return the forms of a kind, such as ``Residual``, that mistakes give a part of a model."""
    return tuple(m.form for m in MISTAKES.values() if isinstance(m.form, kind))


def form_of(mistakes: Iterable[str], registry: Registry[Named]) -> str:
    """Return the name of the form that a part has with some mistakes; the first is healthy."""
    healthy = next(iter(registry))
    forms = (MISTAKES[name].form for name in mistakes)
    return next((f.name for f in forms if f and type(f) is type(registry[healthy])), healthy)


def make(names: Iterable[str], model: nn.Module) -> None:
    """Make mistakes in a healthy model, or a part of one. Raises UnknownVariant and ValueError."""
    for mistake in (MISTAKES[name] for name in names):
        if mistake.apply is None:
            raise ValueError(f"The mistake {mistake.name!r} is not made in a model.")
        resolve(mistake.apply)(model)
