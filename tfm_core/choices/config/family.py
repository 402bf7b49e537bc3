"""Facts that the settings of every model know, whichever the family.

The values here are those of a family without such a part; a family that has it overrides them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tfm_core.choices.config.base import Config, CrossError
from tfm_core.choices.config.shape import patches_per_side
from tfm_core.choices.variants.forms import Causality
from tfm_core.choices.variants.poolings import Pooling
from tfm_core.choices.variants.stems import STEMS
from tfm_core.sentences import Paragraph


class FamilyConfig(Config):
    """The settings of a model."""

    has_blocks: ClassVar[bool] = True
    """Whether it is made of Transformer blocks."""

    @property
    def order(self) -> Causality | None:
        """Which of the tokens that it writes each of them sees; None where no mask decides that."""
        return None

    @property
    def writes_from_past(self) -> bool:
        """Whether each token that it writes is made of those before it alone."""
        return False

    @property
    def pool(self) -> Pooling | None:
        """How one vector is made of all for a label; None in a family that gives no label."""
        return None

    @property
    def n_positions(self) -> int | None:
        """Rows of the table of positions, where the settings fix their number; None otherwise."""
        return None

    def joined_len(self, src_len: int, tgt_len: int) -> int:
        """Return the longest sequence that one stack sees of a source and a target."""
        return max(src_len, tgt_len)

    def patches_per_side(self, image_size: int) -> int:
        """Return the number of patches in a row of a square picture; 0 where words are read."""
        return 0

    def check_picture(self, image_size: int, label: str) -> None:
        """Raise CrossError where the pictures of a task, by its label, cannot be cut."""


class PatchConfig(FamilyConfig):
    """Facts of a family that cuts pictures into patches."""

    if TYPE_CHECKING:  # fields of each family, in the order of its form
        patch_size: int
        stem: str

    def patches_per_side(self, image_size: int) -> int:
        """Return the number of patches in a row. Raises ValueError where they do not divide it."""
        return patches_per_side(image_size, self.patch_size)

    def check_picture(self, image_size: int, label: str) -> None:
        """Raise CrossError where patches do not divide a picture, or a stem cannot halve it."""
        sizes = range(1, image_size + 1)
        if image_size % self.patch_size:
            raise CrossError(
                "model.patch_size",
                Paragraph(
                    "settings/patch-size",
                    patch_size=self.patch_size,
                    size=image_size,
                    label=label,
                    fitting=", ".join(str(n) for n in sizes if image_size % n == 0),
                ),
            )
        stem = STEMS[self.stem]
        if stem.misfit is not None and not stem.fits(image_size, self.patch_size):
            raise CrossError(
                "model.patch_size",
                stem.misfit,
                patch_size=self.patch_size,
                size=image_size,
                label=label,
                fitting=", ".join(str(n) for n in sizes if stem.fits(image_size, n)),
            )
