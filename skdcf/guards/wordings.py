"""Guard against wordings if the guarantee or the filter does not support them.

A user-defined guarantee counts rows, one for each wording, but a text shows one statement per
claim. The proportion of false claims was 0.116 instead of 0.1 when rows were counted. An online
filter would show a claim before its vaguer wordings are known.
"""


def refuse_wordings(estimator, batch):
    """Raise ValueError if problems have wordings but the filter cannot count statements."""
    if batch.wordings is None:
        return
    guarantee = estimator._resolved_guarantee()
    if not guarantee.allows_wordings:
        raise ValueError(
            f"the problems have wordings, but guarantee={guarantee!r} does not "
            "declare that it supports them. Leave wordings out. If the guarantee "
            "counts each claim once, in its vaguest wording, set its class attribute "
            "allows_wordings = True instead"
        )
    if estimator.online:
        raise ValueError(
            "online must be False for problems with wordings, because a claim would "
            "be shown before its vaguer wordings are known. Leave wordings out, or "
            "set online=False"
        )
