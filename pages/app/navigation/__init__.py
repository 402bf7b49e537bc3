"""Navigation: the frame of every page, the table of pages, and the terms that the search finds."""
