"""A model's forward pass as an ONNX file, checked to answer as the model does.

ONNX (Open Neural Network Exchange, onnx.ai) is a graph of plain operations with the weights in it,
read by runtimes on phones, in browsers and in other languages. ``torch.onnx.export`` traces the
model; then onnxruntime runs the file against the model, on several sizes of batch and lengths.

What a file takes, by the family:

- encoder-decoder, recurrent, decoder-only with a source: ``src`` (B, S) and ``tgt_in`` (B, T)
- a language model: ``tgt_in`` (B, T)
- encoder-only: ``src`` (B, S); it answers all slots at once, as many as its task has
- vit: ``images`` (B, C, H, W), normalised; captioner: ``images`` and ``tgt_in``

Its answer is ``logits``. Lengths may be any up to the task's longest, save where a model goes
through them in a loop, which a graph can only hold unrolled: such an input says its one length, and
shorter texts are padded to it on the right, which changes no answer before the padding.

onnx and onnxruntime are imported where they are needed: they take seconds.
"""

from __future__ import annotations

import copy
import json
import logging
import re
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim

from tfm_core import byte_cache
from tfm_core.choices.config import Experiment, to_json
from tfm_core.choices.config.shape import CaptionShape, ImageShape, Shape, TextShape
from tfm_core.data.tasks import data_shape
from tfm_core.data.user_data import sets
from tfm_core.data.vocabulary import BOS, SPECIALS
from tfm_core.export import bundle as zips
from tfm_core.export.exports import Progress
from tfm_core.inspect.attention.trained import checkpoint_mark, model_of
from tfm_core.models.build import Model
from tfm_core.models.recurrent import RecurrentTranslator
from tfm_core.models.text import EncoderOnly
from tfm_core.probe.types import Array
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, StudentError
from tfm_core.trace.source.carried import Carried, carried

OPSET = 18
"""The version of ONNX's operations: runtimes since 2023 read it."""
TOLERANCE = 1e-4
"""How far an answer may be from the model's, absolutely and of its size: float32, whose sums the
runtime takes in another order."""
_TEXTS = ("src", "tgt_in")
_SIZES = {"src": ("batch", "source"), "tgt_in": ("batch", "target"), "images": ("batch",)}
_INT64, _BOOL = 7, 9  # as onnx.TensorProto numbers them


_tracing = threading.Lock()  # what traces is global in torch


@dataclass(frozen=True, slots=True)
class OnnxFile:
    """A file that was checked.

    content: its bytes. inputs: their sizes by name, None for any. checked: the sizes (B, S or T) of
    each call that was compared with the model. worst: the largest difference among all answers.
    """

    content: bytes
    inputs: Mapping[str, tuple[int | None, ...]]
    checked: tuple[tuple[tuple[int, ...], ...], ...]
    worst: float


def bundle(run: Run, progress: Progress | None = None) -> bytes:
    """Return the bytes of ``onnx_file``."""
    if progress is not None:
        progress(0.1, N_("Exporting and checking the ONNX model"))
    return onnx_file(run).content


def file_name(run: Run) -> str:
    """Return the file name, after that of the run's zip."""
    return zips.file_name(run).removesuffix(".zip") + ".onnx"


def onnx_file(run: Run) -> OnnxFile:
    """Return the forward pass of a run's last checkpoint, with what its numbers mean as metadata.

    Raises ValueError where there is no checkpoint, and where the file would not
    answer as the model does.
    """
    return _file(str(run.folder), checkpoint_mark(run))


@byte_cache.cached
def _file(folder: str, mark: int) -> OnnxFile:
    """Return the file of a run whose checkpoint has a mark; cached."""
    run = Run(Path(folder))
    with sets.below(run.folder.parent):
        model, step = model_of(run)
        experiment, data = run.experiment, carried(run.experiment)
        src_len, tgt_len = longest(experiment, data)
        facts = {**described(experiment, data), "name": run.meta.name, "step": str(step)}
        shape = data_shape(experiment)
    return exported(model, shape, src_len=src_len, tgt_len=tgt_len, facts=facts)


def longest(experiment: Experiment, data: Carried) -> tuple[int, int]:
    """Return how many tokens there are at most, of a source and of what is written, <bos> included.

    1 where there are none.
    """
    if isinstance(data_shape(experiment), TextShape):
        task = experiment.task
        return max(1, task.max_src_len), task.n_answers
    return 1, max(1, data.n_written)


def described(experiment: Experiment, data: Carried) -> dict[str, str]:
    """Return the metadata of a file, by name: the experiment, and what ids and classes mean.

    Lists are JSON: ``src_tokens`` and ``tgt_tokens`` in the order of their ids, ``classes``,
    ``mean`` and ``std`` of pixels from 0 to 1, with which pictures are normalised.
    """
    lists: dict[str, Sequence[object]] = {
        "classes": data.classes,
        "src_tokens": data.src,
        "tgt_tokens": data.tgt,
        "mean": data.mean,
        "std": data.std,
    }
    return {"experiment": to_json(experiment)} | {
        name: json.dumps(values, ensure_ascii=False) for name, values in lists.items() if values
    }


def exported(
    model: Model,
    shape: Shape,
    *,
    src_len: int,
    tgt_len: int,
    facts: Mapping[str, str] | None = None,
) -> OnnxFile:
    """Return a model's forward pass, checked; the model stays as it is.

    src_len, tgt_len: the longest there are, in tokens, where texts are read. facts: metadata.
    Raises ValueError.
    """
    with _tracing, _quiet():
        # tracing leaves its own tensors in tables that grow, so it gets a copy
        forward = _Forward(copy.deepcopy(model).eval().cpu(), shape, tgt_len)
        lengths = {"src": src_len, "tgt_in": tgt_len}
        refused: Exception | None = None
        for fixed in _fixed(forward):
            try:
                content = _traced(forward, lengths, fixed, facts or {})
                return _checked(content, forward, lengths, fixed)
            except StudentError:
                raise
            except Exception as error:  # torch and onnxruntime raise dozens of kinds
                refused = error
    raise StudentError(
        "Cannot export this model as ONNX: {why}",
        why=str(refused).strip().partition("\n")[0][:300] or type(refused).__name__,
    ) from refused


class _Forward(nn.Module):
    """A model with the inputs that its family reads, by name."""

    def __init__(self, model: Model, shape: Shape, tgt_len: int) -> None:
        """tgt_len: slots that an encoder-only model answers."""
        super().__init__()
        self.model, self.shape = model, shape
        self.slots = tgt_len if isinstance(model, EncoderOnly) else 0
        if isinstance(shape, TextShape):
            self.names = ("src",) if self.slots else _TEXTS[not shape.has_source :]
        else:
            self.names = ("images", "tgt_in")[: 1 + isinstance(shape, CaptionShape)]

    def forward(self, *given: Tensor) -> Tensor:
        """Return logits (B, T, vocabulary), or (B, classes) for pictures of classes."""
        if self.slots:
            slots = given[0].new_full((len(given[0]), self.slots), BOS)
            given = (given[0], slots)
        elif self.names == ("tgt_in",):
            given = (given[0][:, :0], given[0])
        out: Tensor = self.model(*given)
        return out

    def example(self, lengths: Mapping[str, int], n: int, seed: int = 0) -> tuple[Tensor, ...]:
        """Return inputs for n examples: pictures of noise, texts of random tokens, some padded."""
        generator = torch.Generator().manual_seed(seed)
        return tuple(self._input(name, lengths, n, generator) for name in self.names)

    def _input(
        self, name: str, lengths: Mapping[str, int], n: int, generator: torch.Generator
    ) -> Tensor:
        if isinstance(self.shape, ImageShape | CaptionShape) and name == "images":
            size = self.shape.image_size
            return torch.randn(n, self.shape.channels, size, size, generator=generator)
        assert isinstance(self.shape, TextShape | CaptionShape)
        words, is_src = self.shape.tgt_vocabulary, False
        if name == "src" and isinstance(self.shape, TextShape):
            words, is_src = self.shape.src_vocabulary, True
        first = min(len(SPECIALS), words - 1)
        ids = torch.randint(first, words, (n, lengths[name]), generator=generator)
        if self.shape.pad_id is not None:
            ids[1:, 1 + lengths[name] // 2 :] = self.shape.pad_id
        if not is_src:
            ids[:, 0] = BOS
        return ids


def _fixed(forward: _Forward) -> tuple[frozenset[str], ...]:
    """Return the sets of fixed lengths to try, none fixed first where possible."""
    texts = frozenset(forward.names) & frozenset(_TEXTS)
    if isinstance(forward.model, RecurrentTranslator):
        return (texts,)  # what goes token by token is unrolled
    return (frozenset(), texts) if texts else (texts,)


def _traced(
    forward: _Forward, lengths: Mapping[str, int], fixed: frozenset[str], facts: Mapping[str, str]
) -> bytes:
    """Return the graph with its weights and metadata, for any batch."""
    from onnx_ir.passes.common import ClearMetadataAndDocStringPass

    example = forward.example(lengths, 2)
    forward(*example)  # tables of positions grow to the longest
    any_size: dict[str, dict[int, object]] = {
        name: {0: Dim.DYNAMIC} | ({1: Dim.DYNAMIC} if name in _TEXTS and name not in fixed else {})
        for name in forward.names
    }
    with torch.no_grad():
        program = torch.onnx.export(
            forward,
            example,
            input_names=list(forward.names),
            output_names=["logits"],
            opset_version=OPSET,
            dynamic_shapes=(tuple(any_size.values()),),
            dynamo=True,
            verbose=False,
            custom_translation_table={torch.ops.aten.tril.default: _triangle},
        )
    assert program is not None
    ClearMetadataAndDocStringPass()(program.model)  # where in our files each operation came from
    program.model.metadata_props.update(facts)
    proto: Any = program.model_proto
    _name_sizes(proto.graph)
    content: bytes = proto.SerializeToString()
    return content


def _name_sizes(graph: Any) -> None:
    """Name the dynamic sizes: batch, source and target."""
    names: dict[str, str] = {}
    for value in graph.input:
        for size, name in zip(value.type.tensor_type.shape.dim, _SIZES[value.name], strict=False):
            if size.dim_param:
                names.setdefault(size.dim_param, name)
    for value in (*graph.input, *graph.output, *graph.value_info):
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param:  # a size that follows from others is an expression with their names
                size.dim_param = re.sub(
                    r"\w+", lambda found: names.get(found[0], found[0]), size.dim_param
                )


def _triangle(mask: Any, diagonal: int = 0) -> Any:
    """Return a mask's lower triangle by way of whole numbers: older runtimes have none of bool."""
    from onnxscript import opset18

    ops: Any = opset18
    whole = ops.Trilu(ops.Cast(mask, to=_INT64), np.int64(diagonal), upper=0)
    return ops.Cast(whole, to=_BOOL)


def _checked(
    content: bytes, forward: _Forward, most: Mapping[str, int], fixed: frozenset[str]
) -> OnnxFile:
    """Compare a file with its model on several sizes. Raises ValueError."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, ["CPUExecutionProvider"])
    checked, worst = [], 0.0
    for seed, n in enumerate((1, 3, 2)):
        lengths = {
            name: n_most if name in fixed else max(1, (n_most * (2 - seed) + 1) // 2)
            for name, n_most in most.items()
        }
        inputs = forward.example(lengths, n, seed)
        named = {name: one.numpy() for name, one in zip(forward.names, inputs, strict=True)}
        with torch.no_grad():
            expected = forward(*inputs).numpy()
        (answer,) = session.run(None, named)
        if answer.shape != expected.shape or not np.allclose(
            answer, expected, rtol=TOLERANCE, atol=TOLERANCE
        ):
            raise StudentError(
                Paragraph(
                    "export/onnx-differs",
                    sizes=[tuple(one.shape) for one in inputs],
                    worst=_max_difference(answer, expected),
                )
            )
        checked.append(tuple(tuple(one.shape) for one in inputs))
        worst = max(worst, _max_difference(answer, expected))
    sizes = {
        one.name: tuple(size if isinstance(size, int) else None for size in one.shape)
        for one in session.get_inputs()
    }
    return OnnxFile(content, sizes, tuple(checked), worst)


def _max_difference(one: Array, other: Array) -> float:
    """Return the largest absolute difference, infinite where shapes differ."""
    return float(np.abs(one - other).max()) if one.shape == other.shape else float("inf")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's logging."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    before = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, before, strict=True):
                logger.setLevel(level)
