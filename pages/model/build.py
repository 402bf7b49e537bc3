"""Build: the diagram, equations and code of exactly one model."""

from pages.ui import model_build, model_choice, model_diagram, show
from pages.ui.words import _

show.header("build")
chosen = model_choice.chosen()
model_build.facts(chosen)
if chosen.name == model_choice.DRAFT:
    model_build.editor()
model_diagram.view(chosen)
model_build.code(chosen, _("Show the code"))
