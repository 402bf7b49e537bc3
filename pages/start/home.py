"""Home: what this is, and one press to begin."""

from pages.ui import show

show.header("home")
