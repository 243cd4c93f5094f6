"""Coherent factuality with any scorer."""

from typing import Any, Literal

from numpy.random import RandomState

from ..guarantees import Guarantee
from ._base import BaseFilter


class HardCF(BaseFilter):
    """Coherent factuality: keep claims whose path risk is below a conformal threshold.

    With probability at least ``1 - alpha`` over problems, no kept claim is false, and
    no claim is kept without all claims that it builds on.

    Parameters
    ----------
    scorer : str, int, Scorer, classifier, model, callable or None, default=None
        Where the confidence of a claim comes from: a feature's name or column number,
        a scorer of `skdcf.scorers` or its name, any scikit-learn classifier or pipeline
        (trained on claims), a differentiable model (trained through calibration), or a
        function of a GraphBatch that looks at each problem by itself. None is
        `~skdcf.scorers.FrequencyScorer` where a feature is called "frequency-score", else logistic
        regression on claims. A fitted one is fitted afresh.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim.
    coherent : bool, default=True
        Whether a claim needs all its ancestors. False treats claims as independent.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        What to do with a claim whose path risk equals the threshold. "exclude" keeps
        the guarantee. "include" reproduces the code of the method's authors and
        loses the guarantee where scores are tied. "jitter" breaks ties by a
        seeded hash of the problem, which keeps the guarantee and more claims.
    calibration_size : float, int or "cross", optional
        Share or number of the problems held out of training for calibration. None
        holds out about two fifths, such that ``alpha (n + 1)`` is a whole number and no
        problem is wasted; with a scorer that does not learn, all problems calibrate.
        "cross" trains one scorer per fold on the others, ten in all, and calibrates
        with all problems: it keeps more where there are few, promises 1 - 2 alpha, and
        was seen to cover about 1 - alpha.
    random_state : int, RandomState or None, default=None
        Seeds the split and the jitter.
    guarantee : Guarantee, optional
        What is promised, and for whom; a value of `skdcf.guarantees`, such as
        ``NoFalseClaim(delta=0.05)`` or ``NoFalseClaim(by="model")``. None is
        ``NoFalseClaim()``.

    Attributes
    ----------
    nonconformity_scores_ : ndarray of shape (n_calibration,)
        Sorted; +inf for a problem without a false claim.
    answer_scores_ : ndarray of shape (n_calibration,)
        Largest path risk of each problem with a false claim, sorted; +inf for the others.
    threshold_ : float
        Conformal threshold at ``alpha``; NaN where ``guarantee`` gives problems
        thresholds of their own.
    calibration_ : Calibration
        What the guarantee made of the calibration problems.
    n_calibration_ : int
        Number of calibration problems.
    scorer_ : object
        The fitted scorer.
    n_features_in_ : int
        Number of features per claim.
    feature_names_in_ : ndarray of str
        Where the features are named.

    Notes
    -----
    A step before the filter that learns from labels has seen those of the calibration
    problems, which no filter can notice on a 2-D array: coverage was 0.741 with
    LinearDiscriminantAnalysis and 0.859 with SelectKBest where 0.9 was promised. Put it
    into the classifier, ``HardCF(make_pipeline(SelectKBest(), LogisticRegression()))``,
    which is trained on training problems only. To search, use
    `skdcf.evaluation.fit_search`.

    References
    ----------
    M. Rubin-Toles, M. Gambhir, K. Ramji, A. Roth, S. Goel. Conformal Language Model
    Reasoning with Coherent Factuality. ICLR 2025.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(300, random_state=0, return_X_y=True)
    >>> cf = HardCF("frequency-score", alpha=0.1).fit(graphs[:200], y[:200])
    >>> kept = cf.predict(graphs[200:])
    >>> len(kept), kept[0].dtype
    (100, dtype('bool'))
    >>> bool((cf.predict_alpha(graphs[200:])[0] <= 0.1).tolist() == kept[0].tolist())
    True
    """

    def __init__(
        self,
        scorer: Any = None,
        *,
        alpha: float = 0.1,
        coherent: bool = True,
        ties: Literal["exclude", "include", "jitter"] = "exclude",
        calibration_size: float | int | Literal["cross"] | None = None,
        random_state: int | RandomState | None = None,
        guarantee: Guarantee | None = None,
    ) -> None:
        self.scorer = scorer
        self.alpha = alpha
        self.coherent = coherent
        self.ties = ties
        self.calibration_size = calibration_size
        self.random_state = random_state
        self.guarantee = guarantee
