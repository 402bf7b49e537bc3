"""Texts and words: tokens, embeddings, blanks, captions, surprise, what is written on."""
