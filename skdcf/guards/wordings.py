"""Guard against wordings in settings that do not support them.

A user-defined guarantee counts each wording separately, but a text shows only one wording of each
claim. If wordings were counted separately, the guarantee would not hold for the text. An online
filter would show a claim before all its vaguer wordings are known.
"""


def refuse_wordings(estimator, batch):
    """Raise ValueError if the guarantee or the filter does not support the problems' wordings."""
    if batch.wordings is None:
        return
    guarantee = estimator._resolved_guarantee()
    if not guarantee.allows_wordings:
        raise ValueError(
            f"guarantee={guarantee!r} does not allow wordings, but the problems have "
            "wordings. Remove the wordings. If the guarantee counts each claim once, in "
            "its vaguest wording, set its class attribute allows_wordings to True instead"
        )
    if estimator.online:
        raise ValueError(
            "online must be False for problems with wordings, because a claim would "
            "otherwise be shown before its vaguer wordings are known. Remove the "
            "wordings, or set online=False"
        )
