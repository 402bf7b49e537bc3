"""Home: a recorded training that plays, and three next steps, on one screen."""

from pages.app import show
from pages.home import film

show.header("home")
film.film()
film.doors()
