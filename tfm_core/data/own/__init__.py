"""Data of one's own: immutable sets in a folder beside the runs, learned from like any task.

The way of a set, a function a step. Only ``keep`` writes, and nothing ever leaves the machine::

    report = texts.inspect_text("pairs", raw, name="german.csv", unit="words", seed=0, test=None)
    prepared = texts.prepare(report, name="German")        # -> sets.Prepared, where it can be kept
    own = own_sets.keep(prepared, store=store, visitor=visitor, settings=settings.read())
    experiment = kinds.proposal(own).experiment             # of several kinds.proposals(own)

``report.Report`` says what was found: ``can_keep``, ``problems`` (each a sentence, and the number
of the line), ``notes`` (sentences worth saying), ``columns`` and ``preview`` (rows as a table),
``counts`` by split, ``lengths`` by column, ``balance`` (class -> examples), ``n_across`` (unseen
examples that training holds too), ``layout`` (which columns were read) and ``accounting`` (what
became of each line). ``records`` reads the formats, ``layout`` guesses the columns, ``rows`` takes
two of them. Pictures have their own ways in (``pictures``, ``pictures_set``).

``place`` says where sets lie, ``sets`` what one is, ``kinds`` what kinds there are.
``sets.find(id)`` opens a set, ``sets.missing(experiment.task)`` says in a sentence why a task
cannot be learned here. ``tfm_core.runs.own_sets`` lists, keeps, removes and brings back for a
visitor, within the server's limits. A task names its set in its field ``data``; what a model must
know of it (lengths, sizes of vocabularies) stands beside that in the configuration, so that a run
whose set is gone still opens. Sets whose id begins with ``example-`` come with the app.
"""
