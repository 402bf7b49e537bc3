"""The tours and their stops: one table, which the bar, Home and the presenter read.

A text of a stop is the section ``<tour>-<stop>`` of ``texts/tour.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pages.app.navigation import page_table
from pages.i18n import N_
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.inspect.attention.heads import first_heads
from tfm_core.inspect.attention.pictures import reads_drawings
from tfm_core.inspect.knockouts.parts import Part
from tfm_core.inspect.questions import Question
from tfm_core.inspect.tours import questions, waits
from tfm_core.inspect.tours.questions import causal_mask, cross_attention, positions
from tfm_core.inspect.tours.waits import TourRun, Waited
from tfm_core.probe.labels import CLS
from tfm_core.runs.run import Run

Query = Mapping[str, str]


def _nothing(_run: Run) -> Query:
    return {}


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop of a tour.

    name: of its text. page: a name of the page table. outlines: CSS selectors of what it speaks
    of, the first of which is brought into sight; ``host >>> inner`` is inside a component. query:
    what the page's address says beside the run. asks: its question, before it tells. veils: what
    would give the answer away, blurred until then; not of a run that trains, which is to be
    watched. waits: for what, before it goes on. starts: it offers to train the tour's preset.
    """

    name: str
    page: str
    title: str
    outlines: tuple[str, ...]
    query: Callable[[Run], Query] = _nothing
    asks: Callable[[TourRun], Question] | None = None
    veils: tuple[str, ...] = ()
    waits: Callable[[TourRun], Waited] | None = None
    starts: bool = False

    def __post_init__(self) -> None:
        if self.page not in page_table.PAGES:
            raise ValueError(f"The stop {self.name} is on {self.page}, which is no page.")


@dataclass(frozen=True, slots=True)
class Tour:
    """A tour over one run. recorded: the run that comes with the app; fits: which others do."""

    name: str
    title: str
    preset: str
    recorded: str
    fits: Callable[[Experiment], bool]
    stops: tuple[Stop, ...]


def address(stop: Stop, run: Run) -> tuple[str, dict[str, str]]:
    """Return the path of a stop's page, as ``st.switch_page`` takes it, and its query."""
    return page_table.path_of(stop.page), {"run": run.id, **stop.query(run)}


def _sentence(run: Run) -> Query:
    return {"view": "write", "method": "greedy", "text": str(run.probe().items[0]["src_text"])}


def _first_head(run: Run, kind: str) -> Query:
    """Return the query of the head on which Attention opens, whole: the page then leaves it so.

    What a page adds to its address is one more entry of the browser's history.
    """
    layer, head = first_heads(run).get(kind, (0, 0))
    return {"kind": kind, "layer": str(layer + 1), "head": str(head + 1), "example": "1"}


def _without(run: Run, parts: Callable[[Experiment], tuple[Part, ...]]) -> Query:
    return {"off": ",".join(part.code for part in parts(run.experiment))}


def _translates(experiment: Experiment) -> bool:
    """Return whether a model reads the sentences of the tour, and has what it switches off."""
    known = PRESETS["translate"].experiment
    if experiment.task.name != known.task.name or experiment.model.family != known.model.family:
        return False
    return bool(causal_mask(experiment)) and bool(cross_attention(experiment))


def _reads_digits(experiment: Experiment) -> bool:
    return reads_drawings(experiment) and bool(positions(experiment))


_STAGE = "[class*='st-key-stage-box-'] >>> "
_TRANSLATE = Tour(
    "translate",
    N_("A model learns to translate"),
    preset="translate",
    recorded="recorded-korean",
    fits=_translates,
    stops=(
        Stop(
            "recording", "home", N_("A training, recorded"),
            (_STAGE + ".heads", _STAGE + ".answers"),
            asks=questions.right_at_random,
        ),
        Stop("start", "home", N_("Train your own"), (".st-key-begin",), starts=True),
        Stop(
            "guessing", "train", N_("Better than guessing"), (_STAGE + ".chart.loss",),
            asks=questions.leaves_guessing, veils=(_STAGE + ".curves",),
            waits=waits.left_guessing,
        ),
        Stop(
            "aligns", "train", N_("A head finds the right word"), (_STAGE + ".heads",),
            asks=questions.heads_that_align, veils=(_STAGE + ".heads",), waits=waits.head_aligns,
        ),
        Stop(
            "map", "attention", N_("Read one map"), (".st-key-attention-one",),
            query=lambda run: _first_head(run, "cross"),
            asks=questions.where_it_reads,
            veils=(".st-key-attention-one", ".st-key-attention-lines"),
        ),
        Stop(
            "mask", "masks", N_("No peeking ahead"), (".st-key-masks-editor >>> figure.mask",),
            query=lambda _run: {"mask": "causal"},
            asks=questions.without_mask, waits=waits.is_trained,
        ),
        Stop(
            "writing", "try", N_("One token at a time"), (".st-key-write-desk",),
            query=_sentence, asks=questions.decoder_passes, waits=waits.is_trained,
        ),
        Stop(
            "knockout", "knockouts", N_("Without cross-attention"),
            (".st-key-knockouts-outcome", "[class*='st-key-knockouts-board-']"),
            query=lambda run: _without(run, cross_attention),
            asks=questions.without_cross_attention,
            veils=(".st-key-knockouts-outcome",), waits=waits.is_trained,
        ),
    ),
)  # fmt: skip
_DIGIT = Tour(
    "digit",
    N_("A model reads a digit"),
    preset="vit-digits",
    recorded="recorded-digits",
    fits=_reads_digits,
    stops=(
        Stop(
            "board", "home", N_("Draw a digit"), (".st-key-home-own-digit",),
            asks=questions.sure_at_random,
        ),
        Stop(
            "patches", "walk", N_("A picture becomes tokens"), (".st-key-walk-model",),
            query=lambda _run: {"show": "run", "part": "patches"}, asks=questions.patches_read,
            veils=(".st-key-walk-model",),
        ),
        Stop(
            "curve", "train", N_("It learns to read"), (_STAGE + ".chart.accuracy",),
            asks=questions.reads_most, veils=(_STAGE + ".curves",),
        ),
        Stop(
            "heads", "attention", N_("Where heads look"), (".st-key-attention-heads",),
            query=lambda run: {
                **_first_head(run, "patches"),
                "patch": CLS if run.experiment.has_cls else "mean",
            },
            asks=questions.attention_on_ink, veils=(".st-key-attention-heads",),
        ),
        Stop(
            "drawing", "try", N_("Your turn"), ("[class*='st-key-draw-'] >>> .lab",),
            query=lambda _run: {"view": "draw"},
        ),
        Stop(
            "positions", "knockouts", N_("Without positions"),
            (".st-key-knockouts-outcome", "[class*='st-key-knockouts-board-']"),
            query=lambda run: _without(run, positions),
            asks=questions.without_positions, veils=(".st-key-knockouts-outcome",),
            waits=waits.is_trained,
        ),
    ),
)  # fmt: skip
_FINDING = ".stForm, .st-key-discover-curves"  # the guess that the page asks for, then its curves
_DISCOVER = Tour(
    "discover",
    N_("Known findings, live"),
    preset=_TRANSLATE.preset,  # whose run two of its pages show
    recorded=_TRANSLATE.recorded,
    fits=_translates,
    stops=(
        Stop("induction", "induction", N_("A repeat is continued"), (_FINDING,)),
        Stop("chains", "chains", N_("A loss that falls in steps"), (_FINDING,)),
        Stop("grokking", "grokking", N_("First by heart, then a rule"), (_FINDING,)),
        Stop("adder", "adder", N_("Where the carry is"), (_FINDING,)),
        Stop("sinks", "sinks", N_("Attention with nothing to do"), (_FINDING,)),
        Stop(
            "specialise", "specialise", N_("A role for each head"),
            (".stForm, .st-key-discover-roles",),
        ),
        Stop(
            "superposition", "superposition", N_("More features than dimensions"),
            (".stForm, .st-key-superposition-planes", ".st-key-superposition-start"),
        ),
        Stop("memorising", "memorising", N_("What wrong labels do"), (_FINDING,)),
    ),
)  # fmt: skip
TOURS: dict[str, Tour] = {tour.name: tour for tour in (_TRANSLATE, _DIGIT, _DISCOVER)}
