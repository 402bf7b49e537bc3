"""Build: the diagram, equations and code of exactly one model."""

from pages.architecture import build_view, diagram, model_file
from pages.ui import model_choice, show

show.header("build")
chosen = model_choice.chosen(is_edited=True)
build_view.facts(chosen)
if chosen.name == model_choice.DRAFT:
    build_view.editor(chosen)
diagram.view(chosen)
model_file.structure(chosen)
model_file.view(chosen)
