"""Rotary positions (RoPE): queries and keys turn with position, Su et al. 2021."""

from textwrap import dedent

from tfm_core.sentences import N_
from tfm_core.variants.positions.position import Function, Inside, Look, Position
from tfm_core.variants.positions.sinusoidal import WAVES

_ROTATE = Function(
    "rotate",
    dedent('''\
    def rotate(x, waves):
        """Turn pairs of dimensions by an angle that grows with position (Su et al. 2021)."""
        sin, cos = waves[:, 0::2], waves[:, 1::2]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)
    '''),
)


def _impossible(d_model: int, d_head: int) -> str | None:
    if d_head % 2:
        return N_(
            "Rotary positions turn pairs of dimensions, but a head has {d_head} dimensions, an "
            "odd number; change d_model or n_heads.",
            d_head=d_head,
        )
    return None


ROTARY = Position(
    name="rotary",
    label=N_("Rotary"),
    help=N_("Queries and keys turn with position (RoPE, Su et al. 2021)."),
    source="Su et al. 2021, Eq. 34",
    acts_on="queries and keys",
    layer="tfm_core.layers.relative:Rotation",
    made_of=("d_head",),
    needs_grid=False,
    is_learned=False,
    impossible=_impossible,
    functions=(WAVES, _ROTATE),
    topic="position-rotary",
    words=N_(
        "Nothing is added here: this model turns queries and keys by an angle that grows with "
        "position, after they are split into heads (RoPE). See step {step:split}."
    ),
    look=Look("green", "dashdot", "diamond"),
    added=None,
    inside=Inside(
        query=r"(R_i q_i)^\top",
        key=r"(R_j k_j)",
        plus="",
        where="",
        title=N_("queries, turned"),
        topic="rotary",
        words=N_(
            "Then queries and keys are rotated pair by pair, by an angle that grows with the "
            "position (“queries, turned”). Values are not."
        ),
        parameters={},
        kept_once="{length} d_head",
        by_distance=None,
        init=None,
        made="sinusoidal(x.size(1), D_HEAD).to(x)",
        argument="waves",
        turn="q, k = rotate(q, waves), rotate(k, waves)",
    ),
)
