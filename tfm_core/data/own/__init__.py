"""Custom data: immutable sets in a folder beside the runs, learned from like any task.

From upload to experiment, a function a step. Only ``keep`` writes::

    report = texts.inspect_text("pairs", raw, name="german.csv", unit="words", seed=0, test=None)
    prepared = texts.prepare(report, name="German")        # -> sets.Prepared
    own = own_sets.keep(prepared, store=store, visitor=visitor, settings=settings.read())
    experiment = kinds.proposal(own).experiment             # one of kinds.proposals(own)

Texts: ``uploads`` opens files and zips, ``encodings`` guesses, ``records`` reads the formats,
``chats`` and ``anki`` two of them, ``layout`` guesses the columns, ``rows`` takes two of them,
``classes`` checks labels, ``running`` a plain text, ``tokens`` cuts, ``report`` says what was
found. Pictures: ``pictures`` says what they become, ``pictures_arrays``, ``pictures_table`` and
``pictures_zip`` read uploads, ``pictures_folders`` understands their names, ``pictures_set`` splits
and stores them. ``task`` and ``pictures_task`` make tasks of sets.

``place`` says where sets lie, ``sets`` what one is, ``kinds`` what kinds there are. A task names
its set in its field ``data``; what a model must know of it (lengths, sizes of vocabularies) stands
beside that in the configuration, so that a run whose set is gone still opens. Sets whose id begins
with ``example-`` come with the app. ``tfm_core.runs.own_sets`` lists, keeps and removes sets for a
visitor, within the server's limits.
"""
