"""Wordings with a guarantee or a filter for which nothing is proven.

A user's own guarantee counts rows, one for each wording, but a text shows one statement per
claim: the share of false claims over rows was .116 for .1. An online filter would show a claim
before its vaguer wordings are known.
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
