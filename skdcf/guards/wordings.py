"""Wordings where nothing is proven for them.

A guarantee of the user's own counts rows, of which a claim has one for each wording, while a
text shows one statement per claim: the share of false claims over rows missed .116 for .1. In an
online filter a claim would be shown before its vaguer wordings are known.
"""


def refuse_wordings(estimator, batch):
    """Raise ValueError if problems have wordings, and the filter cannot count statements."""
    if batch.wordings is None:
        return
    guarantee = estimator._resolved()
    if not guarantee.allows_wordings:
        raise ValueError(
            f"the problems have wordings, but guarantee={guarantee!r} does not say that it "
            "counts statements: leave wordings out, or set the class attribute "
            "allows_wordings = True if a claim counts once, in its vaguest wording"
        )
    if estimator.online:
        raise ValueError(
            "the problems have wordings, and online is True: a claim would be shown before its "
            "vaguer wordings are known. Leave wordings out, or set online=False"
        )
