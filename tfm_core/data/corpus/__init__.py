"""Texts for language models: a toy grammar, a chapter of a book, a pasted text."""
