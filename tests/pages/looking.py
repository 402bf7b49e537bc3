"""Opening the attention page through the frame, and reading what it shows."""

import base64
import json
import re

import numpy as np
import plotly.graph_objects as go

from tests.pages.opening import opened_at

OF_THE_FRAME = {
    *("search", "copy_link", "effects", "terms", "task_bar"),
    *("presenter", "lesson_score", "language"),
}
_TERM = re.compile(r"\[([^\]]*)\]\(#term-[a-z0-9-]+\)")


def unmarked(text):
    """Return Markdown without the links to the meanings of terms."""
    return _TERM.sub(r"\1", text)


def opened(run=None, **query):
    if run is not None:
        query["run"] = run.id
    return opened_at("look_inside/attention/page.py", **query)


def said(at):
    """Return every sentence of a page, one below the other."""
    parts = [*at.title, *at.header, *at.subheader, *at.markdown, *at.caption]
    parts += [*at.info, *at.success, *at.warning, *at.error]
    return unmarked("\n".join([*(str(part.value) for part in parts), *map(text_of, trees(at))]))


def viewed(at, view):
    """Choose one of the views of a page."""
    (group,) = [one for one in at.button_group if str(one.key).endswith("-view")]
    group.set_value(view).run()
    assert not at.error
    return at


def keys(at):
    return {button.key for button in at.button}


def pressed(at, label):
    """Press the first button of a label and return the page."""
    next(button for button in at.button if button.label == label).click().run()
    return at


def revealed(at):
    return pressed(at, "Show the answer")


def asked(at):
    """Return the fields of the questions of the page that are still open, in order."""
    fields = [*at.radio, *at.selectbox, *at.number_input]
    return [field for field in fields if field.label == "Your prediction"]


def answered(at, given):
    """Give an answer to the first question that offers it, or takes a number, and check it."""
    field = next(f for f in asked(at) if given in getattr(f, "options", [given]))
    field.set_value(given)
    form = field.proto.form_id
    (button,) = [b for b in at.button if b.proto.form_id == form and b.label == "Check"]
    button.click().run()
    return at


def sent(at, name, key=""):
    """Return what the browser is sent for each component of a name whose id contains a key."""
    parts = [part.proto for part in at.get("bidi_component")]
    return [json.loads(one.json) for one in parts if one.component_name == name and key in one.id]


def trees(at):
    """Return what stands in each part of the page that moves with the film, as it is now."""
    return [data["trees"][str(data["step"])] for data in sent(at, "moving")]


def text_of(tree):
    """Return the text of a tree [tag, class, *children]."""
    if isinstance(tree, list):
        return "".join(text_of(child) for child in tree[2:])
    return tree if isinstance(tree, str) else ""


def shares(at):
    """Return the probabilities that the bars show, in their order."""

    def found(tree):
        if isinstance(tree, list):
            return [share for child in tree[2:] for share in found(child)]
        return [tree] if isinstance(tree, float) else []

    return [share for tree in trees(at) for share in found(tree)]


def grid(at):
    """Return header and weights of the head grid, as the browser first shows them."""
    return unpacked(part_of(at, "head_grid").bytes)


def part_of(at, name):
    (found,) = [
        part.proto for part in at.get("bidi_component") if part.proto.component_name == name
    ]
    return found


def figure_of(at, key) -> go.Figure:
    """Return the figure that a browser is sent under a key."""
    (found,) = sent(at, "live_figure", key)
    return go.Figure(json.loads(found["figure"], object_hook=_decoded))


def _decoded(part):
    """Return the array that plotly has written as text, or what else it is."""
    if "bdata" not in part:
        return part
    values = np.frombuffer(base64.b64decode(part["bdata"]), part["dtype"])
    return values.reshape([int(n) for n in str(part.get("shape", values.size)).split(",")])


def header_of(sent):
    return json.loads(sent[4 : 4 + int.from_bytes(sent[:4], "little")])


def n_drawn(at):
    """Return how many components of its own the page has: figures, grids and the like."""
    return sum(part.proto.component_name not in OF_THE_FRAME for part in at.get("bidi_component"))


def film(sent):
    """Return the header and the values of every frame of what was sent."""
    header = header_of(sent)
    values = np.frombuffer(sent[4 + int.from_bytes(sent[:4], "little") :], header["kind"])
    return header, values.reshape(-1, *header["shape"])


def unpacked(sent):
    header, values = film(sent)
    return header, values[header["frame"]]


def animation(at):
    """Return the steps of the animation that the browser can play, and its weights."""
    header, values = film(part_of(at, "head_grid").bytes)
    return [frame["step"] for frame in header["frames"]], values
