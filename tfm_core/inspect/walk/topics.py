"""The paragraphs of a walk, by topic."""

from __future__ import annotations

from functools import cache

from tfm_core.mistakes import MISTAKES
from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.activations import ACTIVATIONS
from tfm_core.variants.norms import NORMS
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.stems import STEMS


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
        **{norm.walk_topic: norm.walk_words for norm in NORMS.values()},
        **{one.walk_topic: one.walk_words for one in ACTIVATIONS.values()},
        **{stem.walk_topics[-1]: stem.walk_words for stem in STEMS.values()},
        **{kind.topic: kind.words for kind in POSITIONS.values()},
        **{kind.inside.topic: kind.inside.words for kind in POSITIONS.values() if kind.inside},
    }
