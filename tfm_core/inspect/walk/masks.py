"""The step of masks: which query may attend to which key."""

from __future__ import annotations

import torch

from tfm_core.choices.config.shape import TextShape
from tfm_core.choices.variants.forms import Causality
from tfm_core.inspect.questions import Question, number_question
from tfm_core.inspect.walk.block_view import BlockView, mask_seen
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import StepTensor, WalkStep, seen, shape_question
from tfm_core.inspect.walk.tokens import ids_seen
from tfm_core.layers.masks import window_mask
from tfm_core.sentences import N_, Paragraph


def masks(view: BlockView) -> WalkStep:
    """Which query may attend to which key."""
    subject = view.subject
    window, config = view.attention.window, subject.config
    near = " & near" if window else ""
    letter, _colon, words = view.axis.partition(":")
    mask = view.got("self_attention.mask")
    length = view.sizes[1]
    names: dict[str, object] = {}
    if window:
        names["near"] = window_mask(length, window)
    order = subject.order
    causal = f"torch.ones({{n}}, {{n}}, dtype=torch.bool){order.cut or ''}"
    both = ids_seen(subject)
    tgt = both[-1]
    has_padding = subject.shape.pad_id is not None if isinstance(subject.shape, TextShape) else True
    before: tuple[StepTensor, ...] = ()
    after: tuple[StepTensor, ...] = (mask_seen(mask, words),)
    if not has_padding and subject.reader != "encoder-decoder":
        code = f"mask = {causal.format(n='L')}.expand(B, 1, L, L){near}"
    elif letter == "L":  # source and target in one sequence
        before = (_keep(subject, length),)
        code = f"mask = keep[:, None, None, :] & {causal.format(n='L')}{near}"
    elif words == "slots":  # of an encoder alone
        ids = subject.cache["src_embedding.ids"]
        has_slots = subject.reader == "encoder-only"
        label = N_("source ids, with slots") if has_slots else N_("text ids")
        before = (seen("src", label, ids, "B S:slots"),)
        code = f"mask = (src != 0)[:, None, None, :]{near}"
    elif letter == "T":  # pictures have no padding: the caption alone has a mask
        before, code = (tgt,), f"tgt_mask = (tgt != 0)[:, None, None, :] & {causal.format(n='T')}"
        after = (seen("tgt_mask", N_("target mask: 1 = may attend"), mask, "B 1 Q:tgt K:tgt"),)
    else:
        before = both
        first = getattr(config, "window", 0)  # of the target: the first block is shown
        near_tgt = " & near_tgt" if first else ""
        names |= {"T": tgt.value.size(1)}
        if first:
            names["near_tgt"] = window_mask(tgt.value.size(1), first)
        code = _of_both(has_padding, causal.format(n="T"), near, near_tgt)
        tgt_mask = subject.cache["decoder.layers.0.self_attention.mask"]
        label = N_("target mask: 1 = may attend")
        after = (*after, seen("tgt_mask", label, tgt_mask, "B 1 Q:tgt K:tgt"))
    topics = [f"masks-{subject.reader}" if has_padding else "masks-no-padding"]
    if order.sees_future:
        topics = [*(["masks-padding"] if has_padding else []), *view.mistakes(Causality)]
    if getattr(config, "window", 0):
        topics.append("window-by-layer" if getattr(config, "full_every", 0) else "window")
    question = _mask_question(subject, after[-1], view.example, has_padding=has_padding)
    return view.step(
        "masks",
        N_("Masks"),
        ("masks", *topics),
        code,
        question,
        *before,
        *after,
        names=names,
        shown=after[-1].name,
    )


def _of_both(has_padding: bool, causal: str, near: str, near_tgt: str) -> str:
    """Return the code of an encoder's and a decoder's masks."""
    if has_padding:
        return (
            f"mask = (src != 0)[:, None, None, :]{near}\n"
            f"tgt_mask = (tgt != 0)[:, None, None, :] & {causal}{near_tgt}"
        )
    return (
        f"mask = torch.ones_like(src, dtype=torch.bool)[:, None, None, :]{near}\n"
        f"tgt_mask = ({causal}{near_tgt}).expand(len(tgt), 1, -1, -1)"
    )


def _keep(subject: Subject, length: int) -> StepTensor:
    src, tgt = subject.inputs
    n = (src != 0).sum(1, keepdim=True) + (tgt != 0).sum(1, keepdim=True)
    positions = torch.arange(length, device=src.device)
    return seen("keep", N_("1 = a token, 0 = padding"), positions < n, "B L:sequence")


def _mask_question(
    subject: Subject, mask: StepTensor, example: int, *, has_padding: bool
) -> Question:
    _, _, n_rows, n_keys = mask.shape
    if not mask.has_values:
        if has_padding or subject.order.cut is None:
            return _mask_shape(mask)
        return _triangle_shape(mask)
    row = min(2, n_rows - 1)
    n = int(mask.value[example, 0, row].sum())
    text = N_("By `{name}`, to how many keys may each query attend?", name=mask.name)
    because = N_("{n}: the ones in the mask's only row.", n=n)
    hint = N_("Every token may be read, but no padding.")
    if n_rows > 1:
        names = subject.tokens(mask.words[2], example)
        text = N_("By `{name}`, how many keys may query {row} attend to?", name=mask.name, row=row)
        if names:
            text = N_(
                "By `{name}`, how many keys may query {row}, “{token}”, attend to?",
                name=mask.name,
                row=row,
                token=names[row],
            )
        because = N_("{n}: the ones in its row of the mask.", n=n)
        hint = N_("Positions count from 0, and a query may read itself.")
        if n == row + 1:
            because = N_("{n}: positions 0 to {row}.", n=n, row=row)
    wrong = {n_keys: N_("The mask hides some of these keys.")}
    if n_rows > 1 and n == row + 1:
        wrong[row] = N_("Positions count from 0, and a query may read itself.")
    return number_question(text, n, because, wrong=wrong, hint=hint, values=(mask.name,))


def _mask_shape(mask: StepTensor) -> Question:
    batch, _, n_rows, n_keys = mask.shape
    reason = (
        N_("Padding differs by example, and each query has a row; heads share the mask.")
        if n_rows > 1
        else N_("Padding differs by example; heads and queries share the mask.")
    )
    return shape_question(
        mask,
        reason,
        ((batch, n_rows, n_keys), N_("B would be broadcast against H.")),
        ((batch, 1, 1, n_keys), N_("The future differs by query.")),
        ((batch, n_rows, 1, n_keys), N_("Heads come second, queries third.")),
        ((n_rows, n_keys), N_("Padding differs by example.")),
        ((batch, 1, n_keys, 1), N_("That hides queries; padding would still be read as a key.")),
    )


def _triangle_shape(mask: StepTensor) -> Question:
    batch, _, n_rows, n_keys = mask.shape
    return shape_question(
        mask,
        Paragraph("walk_questions/triangle-shape"),
        ((batch, n_rows, n_keys), N_("B would be broadcast against H.")),
        ((batch, n_rows, 1, n_keys), N_("Heads come second, queries third.")),
        ((batch, 1, 1, n_keys), N_("One row for all queries is no triangle.")),
        ((n_rows, n_keys), N_("That is the triangle before it is expanded.")),
    )
