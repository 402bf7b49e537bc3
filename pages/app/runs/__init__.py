"""Runs: the store, their lists, words, times and dialogs, and what a person does with them."""
