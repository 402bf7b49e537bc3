"""The anatomy of two networks of recurrent cells with attention between them.

Bahdanau et al. 2015 ask before each step, Luong et al. 2015 after it. An LSTM cell has 4 matrices
for what comes in and 4 for its state, a GRU cell 3 and 3.
"""

from __future__ import annotations

from dataclasses import replace

from tfm_core.anatomy.formula import formula
from tfm_core.anatomy.layers import Maker, model_input, model_output, tensor
from tfm_core.anatomy.part import Attention, Part, Saved, Work
from tfm_core.choices.config import RecurrentConfig
from tfm_core.choices.config.shape import TextShape
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES, CELLS, AlignmentScore, Cell

_SCORE = "decoder.cross_attention.score"
_CELL: Work = "recurrence"
_ATTENTION: Work = "cross-attention"


def recurrent(config: RecurrentConfig, shape: TextShape) -> tuple[Maker, list[Part]]:
    """Return the parts of a recurrent encoder-decoder, in the order of the forward pass.

    What the attention needs of the source alone is worked out once, before the decoder starts.
    """
    width = config.d_model // (1 + config.is_bidirectional)
    make = Maker.of(
        config,
        d_reader=width,
        n_layers=config.n_layers,
        src_words=shape.src_vocabulary,
        tgt_words=shape.tgt_vocabulary,
    )
    score, cell = ALIGNMENT_SCORES[config.attention], CELLS[config.cell]
    tied_to = "src_embedding.table.weight" if shape.one_vocabulary else ""
    bridge = replace(
        make.linear("bridge", "n_layers d_model", "d_model", ""),
        work=_CELL,
        kind="bridge",
        steps=("bridge",),
    )
    readout = replace(
        make.linear("readout", "d_model", "2 d_model", "T", bias=False),
        work="output",
        kind="readout",
        steps=("writing",),
    )
    output = replace(
        make.linear(
            "output",
            "tgt_words",
            "d_model",
            "T",
            bias=shape.output_bias,
            is_hidden=False,
            saved=Saved(full=formula("T tgt_words")),
        ),
        work="output",
        kind="head",
        steps=("writing",),
    )
    keys = _of_source(make, config.attention)
    return make, [
        model_input("src ids", "S", steps=("tokens",)),
        make.embedding("src_embedding", "src_words", "S"),
        _encoder(make, config, cell, score),
        *((keys,) if keys else ()),
        model_input("tgt ids", "T", steps=("tokens",)),
        make.embedding("tgt_embedding", "tgt_words", "T", tied_to=tied_to),
        bridge,
        _decoder(make, config, cell, score),
        readout,
        output,
        model_output("T", "tgt_words"),
    ]


def _cells(numbers: str, cell: Cell, score: AlignmentScore) -> Saved:
    if score.attends_before_step and not cell.workspace:  # a GRU's steps, measured on a CPU
        return Saved(full=formula(numbers))
    return Saved(products=formula(numbers))


def _cell(
    make: Maker,
    path: str,
    layer: str,
    into: str,
    width: str,
    gates: int,
    length: str,
    suffixes: tuple[str, ...],
) -> Part:
    """Return a recurrent layer, or several (``suffixes``), of ``gates`` matrices each way."""
    rows = f"{gates} {width}"
    parameters = []
    for number, suffix in enumerate(suffixes):
        reads = width if number else into
        parameters += [
            make.parameter(f"{path}.weight_ih{suffix}", rows, reads, is_hidden=True),
            make.parameter(f"{path}.weight_hh{suffix}", rows, width, is_hidden=True),
            make.parameter(f"{path}.bias_ih{suffix}", rows),
            make.parameter(f"{path}.bias_hh{suffix}", rows),
        ]
    n = len(suffixes)
    deeper = f" + {2 * (n - 1) * gates} {length} {width} {width}" if n > 1 else ""
    return Part(
        kind="cell",
        path=path,
        layer=layer,
        inputs=(tensor("x", length, into),),
        outputs=(tensor("states", length, width),),
        parameters=tuple(parameters),
        macs=formula(f"{gates} {length} {width} {into} + {gates} {length} {width} {width}{deeper}"),
        work=_CELL,
    )


def _encoder(make: Maker, config: RecurrentConfig, cell: Cell, score: AlignmentScore) -> Part:
    n, gates = config.n_layers, cell.n_gates
    per_word = n * (gates + (5 if config.is_bidirectional else 3)) + 2
    if config.dropout:  # the noise on what goes into each layer, and what is left of that
        per_word += 2 * n
    saved = [_cells(f"{per_word} S d_model", cell, score)]
    if cell.workspace:
        saved.append(Saved(full=formula(f"{n * cell.workspace} S d_model")))
    x = tensor("x", "S", "d_model")
    readers = []
    for i in range(n):
        path = f"encoder.layers.{i}"
        ways = ("onward", "back") if config.is_bidirectional else ("onward",)
        cells = [
            _cell(
                make, f"{path}.{way}", cell.class_name, "d_model", "d_reader", gates, "S", ("_l0",)
            )
            for way in ways
        ]
        readers.append(
            Part(
                kind="block",
                path=path,
                layer="Reader",
                variant=cell.name,
                inputs=(x,),
                outputs=(x,),
                steps=("encoder",),
                children=tuple(cells),
            )
        )
    return Part(
        kind="stack",
        path="encoder",
        layer="RecurrentEncoder",
        inputs=(x,),
        outputs=(x, tensor("last", "d_model")),
        saved=Saved.total(saved),
        children=tuple(readers),
    )


def _of_source(make: Maker, name: str) -> Part | None:
    """Return the score's matrix over the source; None where there is none."""
    if name == "additive":
        return _square(make, f"{_SCORE}.of_source", "S", bias=True)
    if name == "general":
        return _square(make, f"{_SCORE}.matrix", "S")
    if name in ("concat", "linear"):  # the right half of it here, the left half in the decoder
        n_out = "d_model" if name == "concat" else "1"
        return replace(
            make.linear(f"{_SCORE}.joined", n_out, "2 d_model", "S", bias=False),
            work=_ATTENTION,
            macs=formula("S d_model d_model" if name == "concat" else "S d_model"),
        )
    return None


def _square(make: Maker, path: str, length: str, *, bias: bool = False) -> Part:
    return replace(make.linear(path, "d_model", "d_model", length, bias=bias), work=_ATTENTION)


def _decoder(make: Maker, config: RecurrentConfig, cell: Cell, score: AlignmentScore) -> Part:
    attention, steps = _attention(make, score), _steps(make, config, cell, score)
    x = tensor("x", "T", "d_model")
    n, gates = config.n_layers, cell.n_gates
    per_step = n * (2 * gates + 3) + (6 if score.attends_before_step else 5)
    per_step += 4 if config.dropout else 0
    saved = [_cells(f"{per_step} T d_model", cell, score)]
    if cell.workspace and not score.attends_before_step:  # else steps are taken one by one
        saved.append(Saved(full=formula(f"{n * cell.workspace} T d_model")))
    return Part(
        kind="stack",
        path="decoder",
        layer="AdditiveDecoder" if score.attends_before_step else "LuongDecoder",
        inputs=(x,),
        outputs=(x, tensor("contexts", "T", "d_model")),
        saved=Saved.total(saved),
        variant=cell.name,
        steps=("writing",),
        children=(attention, *steps) if score.attends_before_step else (*steps, attention),
    )


def _steps(
    make: Maker, config: RecurrentConfig, cell: Cell, score: AlignmentScore
) -> tuple[Part, ...]:
    n, gates, d = config.n_layers, cell.n_gates, "d_model"
    if not score.attends_before_step:
        suffixes = tuple(f"_l{i}" for i in range(n))
        return (_cell(make, "decoder.steps", cell.class_name, d, d, gates, "T", suffixes),)
    step = cell.step.partition(":")[2]
    return tuple(
        _cell(make, f"decoder.steps.{i}", step, d if i else "2 d_model", d, gates, "T", ("",))
        for i in range(n)
    )


def _attention(make: Maker, score: AlignmentScore) -> Attention:
    children: list[Part] = []
    if score.name == "additive":
        children.append(_square(make, f"{_SCORE}.of_state", "T"))
    elif score.name in ("concat", "linear"):
        width = "d_model d_model" if score.is_pairwise else "d_model"
        children.append(
            Part(
                kind="projection",
                path=f"{_SCORE}.joined",
                work=_ATTENTION,
                macs=formula(f"T {width}"),
            )
        )
    children.append(_scores(score))
    if score.is_pairwise:
        v = make.parameter(f"{_SCORE}.v.weight", "1", "d_model", is_hidden=True)
        children.append(
            Part(
                kind="projection",
                path=f"{_SCORE}.v",
                layer="Linear",
                parameters=(v,),
                inputs=(tensor("x", "T", "S", "d_model"),),
                outputs=(tensor("scores", "T", "S", "1"),),
                work=_ATTENTION,
                macs=formula("T S d_model"),
            )
        )
    x = tensor("states", "T", "d_model")
    context = Part(
        kind="scores",
        path="decoder.cross_attention",
        outputs=(tensor("context", "T", "d_model"),),
        macs=formula("T S d_model"),
        work=_ATTENTION,
    )
    return Attention(
        kind="attention",
        path="decoder.cross_attention",
        layer="RecurrentAttention",
        variant=score.name,
        inputs=(x,),
        outputs=(tensor("context", "T", "d_model"),),
        steps=("scores", "weights", "context"),
        children=(*children, context),
        n_heads=1,
        queries="T",
        keys="S",
        is_cross=True,
        mask=("padding",),
    )


def _scores(score: AlignmentScore) -> Part:
    """Return the product of states, or the sum of two vectors for each pair of words."""
    is_sum = score.is_pairwise or score.name == "linear"
    return Part(
        kind="scores",
        path=_SCORE,
        layer=score.layer.partition(":")[2],
        outputs=(tensor("scores", "T", "S"),),
        work=_ATTENTION,
        macs=formula("" if is_sum else "T S d_model"),
        saved=Saved(
            full=formula("2 T S"), products=formula("T S d_model" if score.is_pairwise else "")
        ),
    )
