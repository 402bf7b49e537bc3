"""Attacks on the app that take too long for a test, a module each with ``tables(quick)``."""
