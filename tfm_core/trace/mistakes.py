"""Famous mistakes, made on purpose on the user's model, and what they do in numbers, by name.

Those in the code of a block are made on a copy of the model's first block and laid beside the
block as it should be: the same weights, the same real batch, so that every number that differs is
the mistake's.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.choices.config import BlockConfig
from tfm_core.choices.mistakes import (
    ARGMAX_BEFORE_LOSS,
    MISTAKES,
    SOFTMAX_BEFORE_LOSS,
    Mistake,
    make,
)
from tfm_core.choices.mistakes.parts import SharedNorm, SlicedProjection
from tfm_core.layers.blocks import Block, identity_skip
from tfm_core.sentences import N_, Paragraph, StudentError, joined
from tfm_core.trace.learning import (
    copied,
    forward,
    gradients,
    norm_of,
    outputs_of,
    rows,
    scheduled_rate,
    step_randomness,
    update,
)
from tfm_core.training.loop import Trainer
from tfm_core.training.losses import LossCall

BORROWED_DROPOUT = 0.1
"""Dropout that a model without any gets on its copy, so that there is something to see."""


def argmax_before_loss(trainer: Trainer) -> dict[str, Any]:
    """Count wrong answers, and try to learn from the count.

    share: wrong; grad_fn: what the count is to autograd; error: its answer when asked for a
    gradient.
    """
    call = _call(trainer)
    predicted = call.logits.argmax(-1)
    counts = call.targets != call.ignored
    wrong = (predicted != call.targets)[counts].float().mean()
    try:
        wrong.backward()  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        return {"share": float(wrong), "grad_fn": str(wrong.grad_fn), "error": str(error)}
    raise AssertionError("argmax has no gradient")


def argmax_made_to_require_grad(trainer: Trainer) -> dict[str, Any]:
    """Take a whole step on ``argmax().float().requires_grad_()``: no error, and nothing learned.

    The new leaf is all that the backward pass reaches. n: weights of all that got a gradient;
    change: the largest of any weight. answers: those that count, which cross-entropy takes for the
    logits of as many classes.
    """
    copy = copied(trainer)
    copy.model.zero_grad(set_to_none=True)
    before = {name: one.detach().clone() for name, one in copy.model.named_parameters()}
    call = _call(copy)
    counts = call.targets != call.ignored
    predicted = call.logits.argmax(-1).float().requires_grad_()
    loss = F.cross_entropy(predicted[counts], call.targets[counts].float())
    loss.backward()  # type: ignore[no-untyped-call]
    copy.optimizer.step()
    after = dict(copy.model.named_parameters())
    return {
        "loss": float(loss.detach()),
        "answers": int(counts.sum()),
        "all": len(after),
        "n": sum(one.grad is not None for one in after.values()),
        "change": max(
            float((one.detach() - before[name]).abs().max()) for name, one in after.items()
        ),
    }


def forgotten_zero_grad(trainer: Trainer) -> dict[str, float]:
    """Go backward twice without emptying the gradients between.

    once, twice: norms of the gradient after one and two passes; d: how far from exactly twice.
    """
    copy = copied(trainer)
    _loss, once = gradients(copy)
    for _ in range(2):
        forward(copy)[0].backward()  # type: ignore[no-untyped-call]
    twice = {name: one.grad for name, one in copy.model.named_parameters() if one.grad is not None}
    apart = max(float((twice[name] - 2 * once[name]).abs().max()) for name in twice)
    return {"once": norm_of(once.values()), "twice": norm_of(twice.values()), "d": apart}


def softmax_before_loss(trainer: Trainer) -> dict[str, Any]:
    """Give cross-entropy probabilities, which it takes for logits.

    right, wrong: losses with logits and with probabilities, and the norms of their gradients.
    floor: the lowest loss that probabilities of n classes can reach, as they lie from 0 to 1.
    """
    copy = copied(trainer)
    norms, losses = [], []
    for is_wrong in (False, True):
        copy.model.zero_grad(set_to_none=True)
        call = _call(copy)
        given = call.logits.softmax(-1) if is_wrong else call.logits
        loss = F.cross_entropy(given, call.targets, ignore_index=call.ignored)
        loss.backward()  # type: ignore[no-untyped-call]
        gradients = [one.grad for one in copy.model.parameters() if one.grad is not None]
        norms.append(norm_of(gradients))
        losses.append(float(loss.detach()))
    classes = call.logits.size(-1)
    (right, wrong), (right_norm, wrong_norm) = losses, norms
    return {
        "right": right,
        "wrong": wrong,
        "right_norm": right_norm,
        "wrong_norm": wrong_norm,
        "floor": math.log(math.e + classes - 1) - 1,
        "n": classes,
    }


def forgotten_eval(trainer: Trainer) -> dict[str, Any]:
    """Predict the same batch twice with dropout on, and twice with it off.

    share: of dropout; noisy, quiet: the largest difference of a logit. is_borrowed: the model had
    no dropout.
    """
    copy = copied(trainer)
    share = max((m.p for m in copy.model.modules() if isinstance(m, nn.Dropout)), default=0.0)
    is_borrowed = share == 0
    if is_borrowed:
        for module in copy.model.modules():
            if isinstance(module, nn.Dropout):
                module.p = BORROWED_DROPOUT
    copy.model.train()
    noisy = _noise(copy)
    copy.model.eval()
    share = share or BORROWED_DROPOUT
    return {"share": share, "noisy": noisy, "quiet": _noise(copy), "is_borrowed": is_borrowed}


@torch.no_grad()
def _noise(trainer: Trainer) -> float:
    """Return the largest difference of the model's outputs for two seeds of dropout."""
    with outputs_of(trainer.model) as outputs:
        for seed in (1, 2):
            with step_randomness(trainer) as generator, torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                trainer.objective.loss_and_metrics(trainer.model, rows(trainer), generator)
    return float((outputs[0] - outputs[-1]).abs().max())


def _call(trainer: Trainer) -> LossCall:
    _loss, call = forward(trainer)
    if call is None:
        raise StudentError("This mistake needs cross-entropy, which is not this model's loss.")
    return call


def code_of(mistake: Mistake) -> str:
    """Return the right code and the wrong code."""
    return f"{mistake.right}  # right\n\n{mistake.wrong}"


LOOP_MISTAKES: dict[str, tuple[str, str, Callable[[Trainer], dict[str, Any]]]] = {
    "argmax": (
        N_("argmax before the loss"),
        "wrong = (logits.argmax(-1) != targets).float().mean()\nwrong.backward()",
        argmax_before_loss,
    ),
    "new-leaf": (
        ARGMAX_BEFORE_LOSS.label,
        code_of(ARGMAX_BEFORE_LOSS),
        argmax_made_to_require_grad,
    ),
    "zero-grad": (
        N_("Forgetting `zero_grad`"),
        "loss.backward()\nloss_again.backward()  # no optimizer.zero_grad() between",
        forgotten_zero_grad,
    ),
    "loss-input": (
        SOFTMAX_BEFORE_LOSS.label,
        code_of(SOFTMAX_BEFORE_LOSS),
        softmax_before_loss,
    ),
    "eval": (
        N_("Forgetting `model.eval()`"),
        "first, second = model(batch), model(batch)  # still in model.train()",
        forgotten_eval,
    ),
}
"""Mistakes in the training loop: title, code, and what makes them, by the name of their words."""
SHOWN = 6  # numbers of the first token
N_STEPS = 30
"""Steps that a model with and one without a mistake are trained to be compared."""


WrongBlock = tuple[pd.DataFrame, float, float, str]
"""A block as it should be and, a row below, as the mistake makes it: n of its parameters, and the
first numbers of what comes out for the first token of the batch. Then the largest difference of any
number, the standard deviation of the right output, to measure it by, and what else was measured."""
Out = Callable[[nn.Module], Tensor]


def shared_norm(trainer: Trainer) -> WrongBlock:
    """Use one LayerNorm behind or before every sublayer."""
    name, block, _x, out = _first_block(trainer)
    _check_norms(block)
    if block.feed_forward is None:
        raise StudentError("This mistake needs a feed-forward layer: choose d_ff above 0.")
    if isinstance(block.feed_forward_norm, SharedNorm):
        raise StudentError("This model already shares one norm.")
    twin = copy.deepcopy(block)
    make(["shared-norm"], twin)
    _loss, by_name = gradients(trainer)
    first, second = (
        by_name[f"{name}.{which}_norm.weight"] for which in ("self_attention", "feed_forward")
    )
    cosine = float(F.cosine_similarity(first.flatten(), second.flatten(), dim=0))
    fact: str = Paragraph("training_step/shared-norm", cosine=cosine)
    right, wrong = out(block), out(twin)
    if torch.equal(right, wrong):
        equal = N_("Equal outputs: every norm starts with scale 1 and shift 0.")
        fact = joined(equal, fact)
    return _compared(block, twin, right, wrong, fact)


def no_output_projection(trainer: Trainer) -> WrongBlock:
    """Leave out W_O: the heads lie side by side as they are."""
    _name, block, _x, out = _first_block(trainer)
    if isinstance(block.self_attention.out_projection, nn.Identity):
        raise StudentError("This model already has no output projection.")
    twin = copy.deepcopy(block)
    attention = twin.self_attention
    if attention.widths[0] != attention.d_model:
        raise StudentError(Paragraph("training_step/own-width"))
    make(["no-output-projection"], twin)
    fact = Paragraph(
        "training_step/no-output",
        n_heads=attention.n_heads,
        d_head=attention.d_head,
        d_model=attention.d_model,
    )
    return _compared(block, twin, out(block), out(twin), fact)


def residual_from_norm(trainer: Trainer) -> WrongBlock:
    """Add the sublayer to what the norm made of x, not to x: in the pre-norm arrangement."""
    _name, block, x, out = _first_block(trainer)
    _check_norms(block)
    if {block.attention_skip, block.feed_forward_skip} != {identity_skip}:
        raise StudentError("This model’s residuals already have a mistake. Remove it to compare.")
    twin = copy.deepcopy(block)
    twin.norm_first = True
    right = out(twin)
    make(["residual-from-normed"], twin)
    wrong = out(twin)
    arranged = N_("This model is pre-norm, as here.")
    if not block.norm_first:
        arranged = N_("This model is post-norm; here its weights run in pre-norm order.")
    cosines = Paragraph(
        "training_step/residual",
        length=float(x.norm(dim=-1).mean()),
        right=float(F.cosine_similarity(x, right, dim=-1).mean()),
        wrong=float(F.cosine_similarity(x, wrong, dim=-1).mean()),
    )
    return _compared(block, block, right, wrong, joined(cosines, arranged))


def heads_on_slices(trainer: Trainer) -> WrongBlock:
    """Give each head maps of d_head x d_head on its own slice of the embedding."""
    _name, block, _x, out = _first_block(trainer)
    twin = copy.deepcopy(block)
    attention = twin.self_attention
    n_heads, d_model = attention.n_heads, attention.d_model
    if n_heads == 1:
        raise StudentError("This model has one head; the mistake needs two.")
    if attention.n_kv_heads < n_heads:
        raise StudentError("This model’s heads share keys and values; the mistake needs their own.")
    if not isinstance(attention.in_projection, nn.Linear):
        raise StudentError("This model’s heads already read slices.")
    if attention.widths[0] != d_model:
        raise StudentError(Paragraph("training_step/own-width"))
    d_head = attention.d_head
    sliced = SlicedProjection(attention.in_projection, n_heads)
    attention.in_projection = sliced  # type: ignore[assignment] # it has weight and bias
    fact = Paragraph("training_step/slices", d_head=d_head, d_model=d_model, n_heads=n_heads)
    return _compared(block, twin, out(block), out(twin), fact)


BLOCK_MISTAKES: dict[str, Callable[[Trainer], WrongBlock]] = {
    "shared-norm": shared_norm,
    "no-output-projection": no_output_projection,
    "residual-from-normed": residual_from_norm,
    "sliced-heads": heads_on_slices,
}
"""Mistakes of ``tfm_core.choices.mistakes`` that are shown on a block, and what shows them."""
MODEL_MISTAKES = tuple(
    name
    for name, one in MISTAKES.items()
    if one.apply is not None and one.wrong is not None and name not in BLOCK_MISTAKES
)
"""Those that are shown on the whole model."""


def in_model(trainer: Trainer, name: str) -> dict[str, float] | str:
    """Make a mistake in a copy of the model, and run the next batch through both.

    right, wrong: the losses; right_there, wrong_there: those in training, where both draw the same
    dropout; share: what each block drops there, borrowed where the model drops nothing. Of a model
    that crashes with the mistake its error. Raises StudentError where the mistake has no place in
    the model.
    """
    right, wrong, share = _twins(trainer, name)
    try:
        return {
            "right": _loss(right, is_training=False),
            "wrong": _loss(wrong, is_training=False),
            "right_there": _loss(right, is_training=True),
            "wrong_there": _loss(wrong, is_training=True),
            "share": share,
        }
    except RuntimeError as error:
        return str(error)


def train_both(trainer: Trainer, name: str) -> tuple[float, float]:
    """Train a copy of the model as it should be and one with a mistake, on the same batches.

    Returns the losses of both on the batch that follows. Raises as ``in_model`` does.
    """
    losses = []
    for twin in _twins(trainer, name)[:2]:
        twin.model.train()
        for _ in range(N_STEPS):
            _before, by_name = gradients(twin)
            update(twin, by_name, scheduled_rate(twin))
        losses.append(_loss(twin, is_training=False))
    return losses[0], losses[1]


def _twins(trainer: Trainer, name: str) -> tuple[Trainer, Trainer, float]:
    """Return a copy of the model as it should be, one with a mistake, and what both drop."""
    config = trainer.experiment.model
    if name in getattr(config, "mistakes", ()):
        raise StudentError("This model already makes this mistake.")
    refusal = MISTAKES[name].refusal
    sentence = refusal(config) if refusal is not None and isinstance(config, BlockConfig) else None
    if sentence is not None:
        raise StudentError(sentence)
    right = copied(trainer)
    drops = [part for part in right.model.modules() if isinstance(part, nn.Dropout)]
    share = max((part.p for part in drops), default=0.0)
    if not share:
        share = BORROWED_DROPOUT
        for part in drops:
            part.p = share
    wrong = copied(right)
    try:
        make([name], wrong.model)
    except ValueError:
        raise StudentError(
            "The mistake “{mistake}” does not apply to this model.", mistake=MISTAKES[name].label
        ) from None
    return right, wrong, share


@torch.no_grad()
def _loss(trainer: Trainer, *, is_training: bool) -> float:
    """Return the loss of the next batch."""
    trainer.model.train(is_training)
    return float(forward(trainer)[0])


def mm_on_four_axes(trainer: Trainer) -> dict[str, Any]:
    """Multiply the block's own queries with its own keys by ``torch.mm``, then by ``@``.

    Return their shapes, that of the scores that ``@`` gives, and mm's error on four axes.
    """
    _name, block, x, _out = _first_block(trainer)
    with torch.no_grad():
        q, k, _v = block.self_attention.project(x)
    turned = k.transpose(-2, -1)
    try:
        torch.mm(q, turned)
    except RuntimeError as error:
        tensors = {"query": q, "key": turned, "scores": q @ turned}
        shapes = {name: tuple(one.shape) for name, one in tensors.items()}
        return {**shapes, "error": str(error)}
    raise AssertionError("mm takes only matrices")


def _first_block(trainer: Trainer) -> tuple[str, Block, Tensor, Out]:
    """Return the name and a copy of the model's first block, and what the next batch gives it.

    Without dropout; last, what returns a block's output (B, T, d_model) for that batch.
    """
    named = ((name, one) for name, one in trainer.model.named_modules() if isinstance(one, Block))
    name, block = next(named, ("", None))
    if block is None:
        raise StudentError("This model has no Transformer blocks for this mistake.")
    seen: list[tuple[Tensor, dict[str, Any]]] = []

    def keep(_module: nn.Module, given: tuple[Any, ...], others: dict[str, Any]) -> None:
        seen.append((given[0].detach(), others))

    was_training = trainer.model.training
    trainer.model.eval()
    try:
        with block.register_forward_pre_hook(keep, with_kwargs=True), torch.no_grad():
            forward(trainer)
    finally:
        trainer.model.train(was_training)
    if not seen:  # the last block of a CLS model answers for one token, by another way
        raise StudentError("The only block answers for one token; choose two layers.")
    x, others = seen[0]

    def out(block: nn.Module) -> Tensor:
        with torch.no_grad():
            made: Tensor = block(x, **others)
        return made

    return name, copy.deepcopy(block).eval(), x, out


def _check_norms(block: Block) -> None:
    """Raise StudentError where a mistake with norms cannot be made."""
    if isinstance(block.self_attention_norm, nn.Identity):
        raise StudentError("This model has no norms.")


def _compared(
    block: nn.Module, twin: nn.Module, right: Tensor, wrong: Tensor, fact: str
) -> WrongBlock:
    modules = ((block, right), (twin, wrong))
    table = pd.DataFrame(
        {
            "n": [sum(one.numel() for one in module.parameters()) for module, _out in modules],
            "numbers": [out[0, 0, :SHOWN].tolist() for _module, out in modules],
        }
    )
    return table, float((right - wrong).abs().max()), float(right.std()), fact
