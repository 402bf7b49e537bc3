"""How RoPE's angles are made for texts longer than those it was trained on."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.choices.variants.record import Registry, Variant

LOWEST_TURNS, HIGHEST_TURNS = 1, 4
"""Llama 3: pairs that turn at most once in the original length are slowed by the whole factor, and
those that turn four times or more not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeScaling(Variant):
    """function: ``"module:name"``, from the angles of one token, the factor and the original length
    to other angles; None for none. needs_length: whether the original length matters. latex:
    rows that change the angle of pair m, with the factor and the original length to fill in. code:
    the same as lines of the generated file.
    """

    function: str | None
    needs_length: bool
    latex: tuple[str, ...]
    code: str | None


UNSCALED = RopeScaling(
    name="none",
    source="Su et al. 2021, section 3.2.2",
    function=None,
    needs_length=False,
    latex=(),
    code=None,
)
LINEAR = RopeScaling(
    name="linear",
    source="Chen et al. 2023, Eq. 5",
    function="tfm_core.layers.relative:slowed",
    needs_length=False,
    latex=(r"&\theta_m \leftarrow \theta_m / {factor}",),
    code="rates = rates / {factor}  # all pairs turn slower (Chen et al. 2023)",
)
LLAMA3 = RopeScaling(
    name="llama3",
    source="Llama 3.1, apply_scaling",
    function="tfm_core.layers.relative:slowed_by_parts",
    needs_length=True,
    latex=(
        r"&\theta_m \leftarrow \left(s_m + \frac{{1 - s_m}}{{{factor}}}\right) \theta_m",
        r"&s_m = \mathrm{{clip}}_0^1\left("
        r"\frac{{1}}{{3}}\left(\frac{{{length}\,\theta_m}}{{2\pi}} - 1\right)\right)",
    ),
    code=(
        "turns = {length} * rates / (2 * math.pi)  # of each pair over the original length\n"
        "kept = ((turns - 1) / 3).clamp(0, 1)  # pairs that turn fast stay (Llama 3.1)\n"
        "rates = rates * (kept + (1 - kept) / {factor})"
    ),
)

ROPE_SCALINGS = Registry("scaling of RoPE", UNSCALED, LINEAR, LLAMA3)
