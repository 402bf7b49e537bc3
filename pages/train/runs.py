"""Runs: every training that was kept, to open, go on with, rename or delete."""

from pages.ui import show

show.header("runs")
