"""Rotary positions (RoPE): queries and keys turn with position, Su et al. 2021."""

from textwrap import dedent

from tfm_core.sentences import N_, Paragraph
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
        return Paragraph("variants/odd-head", d_head=d_head)
    return None


ROTARY = Position(
    name="rotary",
    label=N_("Rotary"),
    help=N_("Rotate queries and keys by position (RoPE, Su et al. 2021)."),
    source="Su et al. 2021, Eq. 34",
    acts_on="queries and keys",
    layer="tfm_core.layers.relative:Rotation",
    made_of=("d_head",),
    needs_grid=False,
    is_learned=False,
    impossible=_impossible,
    functions=(WAVES, _ROTATE),
    topic="position-rotary",
    words=Paragraph("variants/walk-rotary"),
    look=Look("green", "dashdot", "diamond"),
    added=None,
    inside=Inside(
        query=r"(R_i q_i)^\top",
        key=r"(R_j k_j)",
        plus="",
        where="",
        title=N_("queries, rotated"),
        topic="rotary",
        words=Paragraph("variants/rotary"),
        parameters={},
        kept_once="{length} d_head",
        by_distance=None,
        init=None,
        made="sinusoidal(x.size(1), D_HEAD).to(x)",
        argument="waves",
        turn="q, k = rotate(q, waves), rotate(k, waves)",
    ),
)
