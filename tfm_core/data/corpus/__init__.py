"""Texts for language models: a toy grammar, a chapter of a book, a text that somebody pasted."""
