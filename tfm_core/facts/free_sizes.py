"""A model of text with chosen vocabularies and lengths, not its task's. Torch-free."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from tfm_core.choices.config.shape import Shape, TextShape
from tfm_core.facts.architectures import Architecture
from tfm_core.sentences import Paragraph, StudentError


@dataclass(frozen=True, slots=True)
class FreeSizes:
    """Words of each vocabulary and tokens of one example; 0 takes the task's."""

    src_vocabulary: int = 0
    tgt_vocabulary: int = 0
    src_len: int = 0
    tgt_len: int = 0


def offered(shape: Shape) -> tuple[str, ...]:
    """Return which sizes a model of this shape has; none where it reads pictures."""
    if not isinstance(shape, TextShape):
        return ()
    if not shape.has_source:
        return "tgt_vocabulary", "tgt_len"
    if shape.is_label:
        return "src_vocabulary", "src_len"
    return "src_vocabulary", "tgt_vocabulary", "src_len", "tgt_len"


def sizes_of(known: Architecture) -> FreeSizes:
    """Return the sizes that a model has."""
    if not isinstance(known.shape, TextShape):
        return FreeSizes()
    shape = known.shape
    return FreeSizes(shape.src_vocabulary, shape.tgt_vocabulary, known.src_len, known.tgt_len)


def resized(known: Architecture, sizes: FreeSizes) -> Architecture:
    """Return a model with other sizes, as far as it has them; itself where none differs.

    Raises ValueError, in a sentence, where a learned position table is too short for the lengths.
    """
    names = offered(known.shape)
    own = asdict(sizes_of(known))
    changed = {name: size for name, size in asdict(sizes).items() if size and name in names}
    if all(own[name] == size for name, size in changed.items()):
        return known
    assert isinstance(known.shape, TextShape)
    new = FreeSizes(**(own | changed))
    if not known.shape.has_source:
        new = replace(new, src_vocabulary=new.tgt_vocabulary)
    n_rows = known.model.n_positions
    needed = known.model.joined_len(new.src_len, new.tgt_len)
    if n_rows is not None and needed > n_rows:
        raise StudentError(Paragraph("facts/too-long", needed=needed, max_len=n_rows))
    shape = replace(
        known.shape, src_vocabulary=new.src_vocabulary, tgt_vocabulary=new.tgt_vocabulary
    )
    return replace(known, shape=shape, src_len=new.src_len, tgt_len=new.tgt_len)
