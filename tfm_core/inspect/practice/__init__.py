"""One guided run: splits, early stopping, intervals, evaluation, saving."""
