"""User data: immutable sets in a folder beside the runs, learned from like any task.

From upload to experiment, a function a step. Only ``keep`` writes::

    report = texts.inspect_text("pairs", raw, name="german.csv", unit="words", seed=0, test=None)
    prepared = kinds.prepare(report, name="German")         # -> sets.Prepared
    user_set = own_sets.keep(prepared, store=store, visitor=visitor, settings=settings.read())
    experiment = kinds.proposal(user_set).experiment        # one of kinds.proposals(user_set)

``uploads`` has what every upload goes through: limits, zips, guesses of encodings, and ``Item``, a
row or a picture, which the one loop reads or skips with a reason; ``Report`` holds the outcome.
Texts: ``text_files`` decodes uploads, ``records`` reads the formats into rows, ``layout`` guesses
the columns, ``texts`` checks and splits the rows, ``tokens`` cuts. Pictures: ``pictures_zip`` and
``pictures_arrays`` yield them from uploads, ``pictures`` makes them alike, splits and stores them.

``sets`` says what a set is and where it lies, ``kinds`` what kinds there are, ``task`` and
``pictures`` make tasks of sets. A task names its set in its field ``data``; what a model must know
of it (lengths, sizes of vocabularies) stands beside that in the configuration, so that a run whose
set is gone still opens. ``tfm_core.runs.own_sets`` keeps and removes sets for a visitor.
"""
