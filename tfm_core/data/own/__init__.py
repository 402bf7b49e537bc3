"""Custom data: immutable sets in a folder beside the runs, learned from like any task.

From upload to experiment, a function a step. Only ``keep`` writes::

    report = texts.inspect_text("pairs", raw, name="german.csv", unit="words", seed=0, test=None)
    prepared = kinds.prepare(report, name="German")         # -> sets.Prepared
    own = own_sets.keep(prepared, store=store, visitor=visitor, settings=settings.read())
    experiment = kinds.proposal(own).experiment             # one of kinds.proposals(own)

``containers`` has what every upload goes through: the table of limits, zips, guesses of encodings,
and ``Item``, a row or a picture, which the one loop reads or skips with a reason. Texts:
``text_files`` opens and decodes uploads, ``records`` reads the formats into rows, ``layout``
guesses the columns, ``texts`` checks and splits rows of two texts, or a text, ``tokens`` cuts.
Pictures: ``pictures_zip`` and ``pictures_arrays`` yield them from uploads, ``pictures`` makes them
alike, splits and stores them. ``report`` has the outcome of all: the items kept and skipped, and
what was found. ``task`` and ``pictures`` read sets, and make tasks of them.

``place`` says where sets lie, ``sets`` what one is, ``kinds`` what kinds there are. A task names
its set in its field ``data``; what a model must know of it (lengths, sizes of vocabularies) stands
beside that in the configuration, so that a run whose set is gone still opens. Sets whose id begins
with ``example-`` come with the app. ``tfm_core.runs.own_sets`` lists, keeps and removes sets for a
visitor, within the server's limits.
"""
