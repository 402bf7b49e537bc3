"""Faults that leave results plausible, for ``benchmarks.mutants``."""

PLANTED: tuple[tuple[str, str, str], ...] = (
    # numbers of papers
    ("tfm_core/training/masked.py", "HIDDEN, RANDOM = 0.8, 0.1", "HIDDEN, RANDOM = 0.8, 0.15"),
    (
        "tfm_core/layers/relative.py",
        "N_BUCKETS, FARTHEST = 32, 128",
        "N_BUCKETS, FARTHEST = 32, 256",
    ),
    ("tfm_core/choices/variants/training.py", "ITERATIONS: Final = 5", "ITERATIONS: Final = 6"),
    ("tfm_core/choices/variants/training.py", "RMS: Final = 0.2", "RMS: Final = 0.25"),
    ("tfm_core/training/progress.py", "MEMORY = 0.8", "MEMORY = 0.9"),
    # thresholds that a page names
    ("tfm_core/studies/induction.py", "THRESHOLD = 0.4", "THRESHOLD = 0.3"),
    ("tfm_core/studies/memorising.py", "RISE = 0.02", "RISE = 0.05"),
    ("tfm_core/studies/superposition.py", "KEPT = 0.7", "KEPT = 0.5"),
    # limits, off by one
    ("tfm_core/runs/queue/limits.py", "steps > self.max_steps", "steps >= self.max_steps"),
    (
        "tfm_core/runs/queue/limits.py",
        "count > self.max_parameters",
        "count >= self.max_parameters",
    ),
    ("tfm_core/runs/queue/limits.py", "n_queued >= self.max_queued", "n_queued > self.max_queued"),
    ("tfm_core/runs/queue/limits.py", "seconds >= self.max_seconds", "seconds > self.max_seconds"),
    ("tfm_core/export/weights_in.py", "facts.step > status.step", "facts.step > status.step + 1"),
    (
        "tfm_core/inspect/errors.py",
        "np.ceil(confidence.astype(np.float64) * n_bins) - 1",
        "np.floor(confidence.astype(np.float64) * n_bins)",
    ),
    # what is only reported
    (
        "tfm_core/training/loop.py",
        "0.9 * per_example + 0.1 * took",
        "0.1 * per_example + 0.9 * took",
    ),
    ("tfm_core/inspect/differences.py", "(-counts[seed], seed)", "(counts[seed], seed)"),
    ("tfm_core/trace/tokens.py", '{"batch": n * batch,', '{"batch": n // batch,'),
    (
        "tfm_core/inspect/errors.py",
        '(bins["accuracy"] - bins["confidence"]).abs()',
        'bins["accuracy"] - bins["confidence"]',
    ),
    # guards in rare states
    (
        "tfm_core/runs/auth.py",
        'claims.get("is_logged_in") is not True',
        'not claims.get("is_logged_in")',
    ),
    ("tfm_core/runs/auth.py", 'f"{issuer}\\n{subject}"', 'f"{subject}"'),
    (
        "tfm_core/data/user_data/sets.py",
        "if not is_example and _digest(content)[:20] != name:",
        "if not is_example and not content:",
    ),
    # what pages show
    (
        "pages/look_inside/knockouts/page.py",
        "_signed(after.loss - before.loss)",
        "_signed(before.loss - after.loss)",
    ),
    ("pages/look_inside/costs.py", "show.count(2 * work)", "show.count(work)"),
    ("pages/look_inside/attention/maps.py", "place=best[i] + 1", "place=best[i]"),
)
"""Path, what stands there once, and what takes its place."""

CHANGE_NOTHING: frozenset[tuple[str, str, str]] = frozenset(
    {
        # half of the lowest number or all of it: a softmax gives 0
        (
            "tfm_core/layers/attention.py",
            "torch.finfo(kind).min / 2",
            "((torch.finfo(kind).min) * (2))",
        ),
        ("tfm_core/inspect/speed/measure.py", "0.1", "0.2"),  # the pause between two looks
        # only a shortcut: what is unknown here is asked for two lines below
        (
            "tfm_core/runs/queue/limits.py",
            'memory_of(device) if device == "cpu" else None',
            "(None if device == 'cpu' else memory_of(device))",
        ),
        # a number that only has to be another one
        (
            "pages/app/navigation/ticks.py",
            "st.session_state.get(_RESETS, 0) + 1",
            "((st.session_state.get(_RESETS, 0)) - (1))",
        ),
        ("tfm_core/data/user_data/sets.py", "20", "21"),  # each kind has fewer letters
    }
)
"""Path, text and new text of changes that were drawn and that nobody could see."""
