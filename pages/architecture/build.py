"""Build: the diagram, equations and code of exactly one model."""

from pages.architecture import build_view, diagram
from pages.i18n import _
from pages.ui import model_choice, show

show.header("build")
chosen = model_choice.chosen(is_edited=True)
build_view.facts(chosen)
if chosen.name == model_choice.DRAFT:
    build_view.editor(chosen)
diagram.view(chosen)
build_view.code(chosen, _("Show the code"))
