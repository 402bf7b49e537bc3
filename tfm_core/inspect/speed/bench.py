"""The work that is timed: forward and backward of the user's model on a real batch.

Dropout and augmentation are off, so all sides compute the same numbers; there is no update.
Explicit attention, softmax(q k^T) v with its map in memory, is compared with the fused kernel of
Dao et al. 2022, "FlashAttention", which reads keys in tiles and never stores the (Q, K) map, so the
memory for the backward pass grows linearly with the length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

from tfm_core.choices.config import (
    Experiment,
    ImageTaskConfig,
    OwnPicturesTaskConfig,
    TextTaskConfig,
)
from tfm_core.choices.variants.training import PRECISIONS, Precision
from tfm_core.data.image_data import EMBEDDED
from tfm_core.inspect.speed.report import BenchmarkCase, Equality
from tfm_core.layers.attention import MultiHeadAttention, attention_weights, fused_attention
from tfm_core.layers.blocks import Block
from tfm_core.layers.recorder import recording
from tfm_core.sentences import N_, Paragraph, StudentError
from tfm_core.training.loop import Trainer, build

MAX_PARAMETERS = 50_000_000
MAX_EXAMPLES = 2048
"""Examples to take batches from."""

LARGEST = 512  # examples of a batch
LOSS_SCALE = 2.0**10
BACKENDS = {  # what autograd calls the kernel that ran -> its name for a reader
    "ScaledDotProductFlashAttentionForCpuBackward0": N_("flash, for CPU"),
    "ScaledDotProductFlashAttentionBackward0": "flash",
    "ScaledDotProductEfficientAttentionBackward0": N_("memory-efficient"),
    "ScaledDotProductCudnnAttentionBackward0": "cuDNN",
}

Around = Callable[[], AbstractContextManager[object]]


@dataclass(eq=False)
class Bench:
    """A model with its data on a device."""

    experiment: Experiment
    trainer: Trainer

    @classmethod
    def of(cls, experiment: Experiment, device: str = "cpu") -> Bench:
        """Build the model of an experiment. Raises ValueError, in a sentence, where it cannot."""
        plain = without_chance(experiment)
        check_size(plain)
        return cls(plain, build(plain, device))

    @property
    def model(self) -> nn.Module:
        """The model; in training mode, without dropout."""
        return self.trainer.model

    @property
    def device(self) -> torch.device:
        """Where model and data lie."""
        return self.trainer.device

    def indices(self, size: int | None = None) -> Tensor:
        """Return (B,): the first training examples, by default a batch of them."""
        return torch.arange(min(size or self.trainer.batch_size, self.trainer.objective.n_train))

    def loss(self, indices: Tensor | None = None) -> Tensor:
        """Return the mean loss of a batch."""
        chosen = self.indices() if indices is None else indices
        generator = torch.Generator().manual_seed(0)
        return self.trainer.objective.loss_and_metrics(self.model, chosen, generator).loss

    def pass_(self, around: Around = nullcontext, indices: Tensor | None = None) -> Tensor:
        """Go forward inside a context, and backward; return the loss."""
        self.model.zero_grad(set_to_none=True)
        with around():
            loss = self.loss(indices)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def results(self, around: Around = nullcontext) -> dict[str, Tensor]:
        """Return loss, output and all gradients of one pass, each in one float32 tensor."""
        outputs: list[Tensor] = []

        def keep(_module: nn.Module, _inputs: object, output: object) -> None:
            if isinstance(output, Tensor):
                outputs.append(output.detach().float().flatten())

        with self.model.register_forward_hook(keep):
            loss = self.pass_(around)
        gradients = [p.grad.flatten() for p in self.model.parameters() if p.grad is not None]
        tensors = {"loss": loss.float()[None], "gradients": torch.cat(gradients).float()}
        return tensors | ({"output": torch.cat(outputs)} if outputs else {})


def without_chance(experiment: Experiment) -> Experiment:
    """Return an experiment without dropout and augmentation, and with few examples.

    Small grey pictures come from the digits in the app: no download, same work.
    """
    model, task = experiment.model, experiment.task
    if "dropout" in type(model).model_fields:
        model = model.replace(dropout=0.0)
    off = {name: 0.0 for name in ("shift", "rotation", "scale") if name in type(task).model_fields}
    if off:
        task = task.replace(**off)
    is_small = task.picture_shape == (1, 28, 28) and not isinstance(task, OwnPicturesTaskConfig)
    if is_small and task.class_names:
        n = min(experiment.task_as(ImageTaskConfig).n_validation, 500)
        task = task.replace(name=EMBEDDED, n_validation=n)
    if isinstance(task, TextTaskConfig):
        fewer = max(experiment.trained.batch_size, MAX_EXAMPLES)
        task = task.replace(n_train=min(task.n_train, fewer), n_validation=8, n_test=8)
    training = experiment.trained.replace(precision="fp32")
    return experiment.replace(
        model=model.model_dump(), task=task.model_dump(), training=training.model_dump()
    )


def check_size(experiment: Experiment) -> None:
    """Raise ValueError, in a sentence, where a model is too large to measure in a moment."""
    from tfm_core.models.build import init_on_meta
    from tfm_core.training.setup import new_model

    with init_on_meta():
        count = sum(parameter.numel() for parameter in new_model(experiment).parameters())
    if count > MAX_PARAMETERS:
        raise StudentError(
            Paragraph("speed/too-large", count=count, most_parameters=MAX_PARAMETERS)
        )


def compare(
    reference: Mapping[str, Tensor],
    other: Mapping[str, Tensor],
    side: str,
    *,
    relative: float = 1e-4,
) -> tuple[Equality, ...]:
    """Return the differences between two sides' results.

    relative: the tolerance as a share of the reference's largest value (at least 1e-3).
    """
    return tuple(
        {
            "what": name,
            "side": side,
            "difference": float((value - other[name].to(value.device)).abs().max()),
            "tolerance": relative * max(float(value.abs().max()), 1e-3),
        }
        for name, value in reference.items()
    )


def saved_bytes(call: Callable[[], object]) -> int:
    """Return the bytes that autograd saves in a call, without the weights themselves."""
    storages: dict[int, int] = {}
    kept: list[Tensor] = []  # so that no storage's address comes back

    def pack(tensor: Tensor) -> Tensor:
        # a view of a parameter, such as its transpose, is no copy
        if not isinstance(tensor, nn.Parameter) and not isinstance(tensor._base, nn.Parameter):
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
            kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        call()
    return sum(storages.values())


def explicit_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    divisor: float | None = None,
) -> Tensor:
    """Weights first, all (B, H, Q, K) of them in memory, then the weighted sum of values."""
    return attention_weights(q, k, mask, bias, divisor=divisor) @ v


def einsum_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    divisor: float | None = None,
) -> Tensor:
    """The same by two einsums. q: (B, H, Q, D), k and v: (B, H, K, D)."""
    q, k, v = (part.transpose(1, 2) for part in (q, k, v))
    scores = torch.einsum("nqhd,nkhd->nhqk", q, k)
    scores = scores / (math.sqrt(q.size(-1)) if divisor is None else divisor)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return torch.einsum("nhql,nlhd->nqhd", weights, v).transpose(1, 2)


class _Nothing:
    """A recorder that keeps nothing; while it is active, attention takes its explicit path."""

    def wants(self, module: object, kinds: Collection[str]) -> bool:
        """Ask for everything."""
        return True

    def record(self, module: object, tensors: dict[str, Tensor]) -> None:
        """Let everything go."""


def written_out() -> AbstractContextManager[None]:
    """Return a context in which all attention of our models is computed step by step."""
    return recording(_Nothing())


class _Calls(_Nothing):
    """A recorder that keeps what each attention was computed from."""

    def __init__(self) -> None:
        self.found: list[dict[str, Tensor]] = []
        self.divisors: list[float] = []

    def record(self, module: object, tensors: dict[str, Tensor]) -> None:
        """Keep query, key, value, mask and bias."""
        if isinstance(module, MultiHeadAttention) and "weights" in tensors:
            names = {"query", "key", "value", "mask", "bias"} & tensors.keys()
            self.divisors.append(module.divisor)
            self.found.append({name: tensors[name].detach() for name in names})


def backend_name(out: Tensor) -> str:
    """Return which kernel made a tensor, as autograd remembers it."""
    name = out.grad_fn.name() if out.grad_fn is not None else ""
    return BACKENDS.get(name, N_("math, step by step"))


def attention_cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare the first attention of the model, then the whole pass."""
    calls = _Calls()
    with recording(calls):
        bench.loss()
    yield _alone(calls.found[0], calls.divisors[0])
    yield _whole(bench)


def _alone(seen: dict[str, Tensor], divisor: float) -> BenchmarkCase:
    q, k, v = (seen[name].clone().requires_grad_() for name in ("query", "key", "value"))
    mask, bias = seen.get("mask"), seen.get("bias")

    def math_attention() -> Tensor:
        with sdpa_kernel([SDPBackend.MATH]):
            return fused_attention(q, k, v, mask, bias, divisor=divisor)

    ways: dict[str, Callable[[], Tensor]] = {
        "explicit": partial(explicit_attention, q, k, v, mask, bias, divisor=divisor),
        "einsum": partial(einsum_attention, q, k, v, mask, bias, divisor=divisor),
        "math": math_attention,
        "fused": partial(fused_attention, q, k, v, mask, bias, divisor=divisor),
    }

    def run(side: str) -> Tensor:
        for tensor in (q, k, v):
            tensor.grad = None
        out = ways[side]()
        out.square().sum().backward()  # type: ignore[no-untyped-call]
        return out

    def results(side: str) -> dict[str, Tensor]:
        out = run(side).detach()
        gradients = [tensor.grad.flatten() for tensor in (q, k, v) if tensor.grad is not None]
        return {"output": out, "gradients": torch.cat(gradients)}

    reference = results("explicit")
    others = [name for name in ways if name != "explicit"]
    equal = [compare(reference, results(name), name) for name in others]
    calls: dict[str, Callable[[], object]] = {name: partial(run, name) for name in ways}
    batch, heads, length, width = q.shape
    return BenchmarkCase(
        N_("attention of one layer"),
        calls,
        tuple(one for group in equal for one in group),
        n_bytes={name: saved_bytes(call) for name, call in calls.items()},
        facts={
            "backend": backend_name(run("fused")),
            "shape": f"({batch}, {heads}, {length}, {width})",
            "keys": float(k.size(2)),
        },
    )


def _whole(bench: Bench) -> BenchmarkCase:
    sides: dict[str, Callable[[], object]] = {
        "explicit": partial(bench.pass_, written_out),
        "fused": bench.pass_,
    }
    return BenchmarkCase(
        N_("whole model, forward and backward"),
        sides,
        compare(bench.results(written_out), bench.results(), "fused"),
        n_bytes={name: saved_bytes(side) for name, side in sides.items()},
    )


def sizes(batch_size: int, n_train: int) -> list[int]:
    """Return 1, 2, 4, ... up to twice the configured batch, as far as there are examples."""
    top = min(2 * batch_size, LARGEST, n_train)
    return sorted({top, *(2**i for i in range(top.bit_length()) if 2**i < top)})


def one_batch(bench: Bench, indices: Tensor) -> Tensor:
    """Learn from all examples in one pass."""
    return bench.pass_(indices=indices)


def one_by_one(model: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    """Return the model's output for each example of a batch, one at a time."""
    count = len(inputs[0])
    return torch.cat([model(*(one[i : i + 1] for one in inputs)) for i in range(count)])


def batch_cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Check a batch against its examples one by one, then time every size."""
    for size in sizes(bench.trainer.batch_size, bench.trainer.objective.n_train):
        indices = bench.indices(size)
        yield BenchmarkCase(
            N_("forward and backward"),
            {"batch": partial(one_batch, bench, indices)},
            _checked(bench, indices[:8]),
            x=float(len(indices)),
        )


def _checked(bench: Bench, few: Tensor) -> tuple[Equality, ...]:
    seen: list[tuple[Tensor, ...]] = []
    with torch.no_grad():
        with bench.model.register_forward_pre_hook(lambda _model, inputs: seen.append(inputs)):
            bench.loss(few)
        together, alone = bench.model(*seen[0]), one_by_one(bench.model, seen[0])
    return compare(
        {f"output for {len(few)} examples": together},
        {f"output for {len(few)} examples": alone},
        "batch",
    )


@contextmanager
def checkpointed(model: nn.Module) -> Iterator[None]:
    """Within the context, each Transformer block is recomputed in the backward pass."""
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    for block in blocks:
        block.__dict__["forward"] = partial(checkpoint, block.forward, use_reentrant=False)
    try:
        yield
    finally:
        for block in blocks:
            del block.__dict__["forward"]


def plain_pass(bench: Bench) -> Tensor:
    """Keep every activation, in fp32."""
    return bench.pass_()


def autocast_pass(bench: Bench, dtype: torch.dtype, *, scales_loss: bool) -> Tensor:
    """Go forward under autocast; fp16 also scales the loss, lest small gradients become zero."""
    scale = LOSS_SCALE if scales_loss else 1.0
    bench.model.zero_grad(set_to_none=True)
    with torch.autocast(bench.device.type, dtype=dtype):
        loss = bench.loss()
    (scale * loss).backward()  # type: ignore[no-untyped-call]
    if scale != 1.0:
        gradients = [p.grad for p in bench.model.parameters() if p.grad is not None]
        torch._foreach_div_(gradients, scale)
    return loss.detach()


def checkpointing_cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare the pass with recomputed blocks (Chen et al. 2016) and in 16 bits.

    Micikevicius et al. 2018: bf16 has the range of fp32 and 8 bits of precision; fp16 has 11 bits
    and a small range, so its loss is scaled.
    """
    bf16, fp16 = PRECISIONS["bf16"], PRECISIONS["fp16"]
    recomputed = partial(checkpointed, bench.model)

    def in_16_bits(precision: Precision) -> AbstractContextManager[object]:
        return torch.autocast(bench.device.type, dtype=_dtype(precision))

    @contextmanager
    def both() -> Iterator[None]:
        with in_16_bits(bf16), recomputed():
            yield

    sides: dict[str, Callable[[], object]] = {
        "plain": partial(plain_pass, bench),
        "checkpointed": partial(bench.pass_, recomputed),
        "bf16": partial(autocast_pass, bench, _dtype(bf16), scales_loss=bf16.scales_loss),
        "fp16": partial(autocast_pass, bench, _dtype(fp16), scales_loss=fp16.scales_loss),
        "both": partial(bench.pass_, both),
    }
    reference = bench.results()
    rounded = {name: tensor for name, tensor in reference.items() if name != "gradients"}
    equal = [*compare(reference, bench.results(recomputed), "checkpointed")]
    for side, precision, around in (
        ("bf16", bf16, partial(in_16_bits, bf16)),
        ("fp16", fp16, partial(in_16_bits, fp16)),
        ("both", bf16, both),
    ):
        equal += compare(rounded, bench.results(around), side, relative=precision.tolerance)
    yield BenchmarkCase(
        N_("forward and backward"),
        sides,
        tuple(equal),
        n_bytes={name: saved_bytes(side) for name, side in sides.items()},
    )


def _dtype(precision: Precision) -> torch.dtype:
    assert precision.autocast is not None
    dtype: torch.dtype = getattr(torch, precision.autocast)
    return dtype


CASES: dict[str, Callable[[Bench], Iterator[BenchmarkCase]]] = {
    "attention": attention_cases,
    "batch": batch_cases,
    "checkpointing": checkpointing_cases,
}
