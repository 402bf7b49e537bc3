"""The paragraphs of a walk, by topic."""

from __future__ import annotations

from functools import cache

from tfm_core.choices.mistakes import MISTAKES
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.stems import STEMS
from tfm_core.sentences import N_, Paragraph


def topic_text(topic: str) -> str:
    """Return a topic's paragraph, with the names of settings and steps still to be filled in."""
    return _of_records().get(topic) or Paragraph(f"walk/{topic}")


@cache
def _of_records() -> dict[str, str]:
    """Return the paragraphs that the records of mistakes and variants bring along."""
    return {
        **{
            f"mistake-{one.name}": N_("**A mistake worth seeing:** {help}", help=one.help)
            for one in MISTAKES.values()
        },
        **{f"norm-{norm.name}": norm.walk for norm in NORMS.values()},
        **{f"activation-{one.name}": one.walk for one in ACTIVATIONS.values()},
        **{f"stem-{stem.name}": stem.walk for stem in STEMS.values()},
        **{f"position-{kind.name}": kind.walk for kind in POSITIONS.values()},
        **{
            f"inside-{kind.name}": kind.inside_walk
            for kind in POSITIONS.values()
            if kind.inside_walk is not None
        },
    }
