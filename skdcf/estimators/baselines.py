"""The methods that coherent conformal filters are compared with, as presets."""

from ..scorers import FrequencyScorer, as_scorer
from ..scorers._fixed import FREQUENCY
from ._base import BaseFilter


class IndependentFactuality(BaseFilter):
    """Conformal factuality without a graph: every claim stands for itself.

    Parameters
    ----------
    scorer : str, int, scorer, classifier, callable or None, default=None
        As in `HardCF`.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `HardCF`.
    calibration_size : float or int, optional
        As in `HardCF`.
    random_state : int, RandomState or None, default=None
        Seeds the split and the jitter.

    Attributes
    ----------
    nonconformity_scores_, threshold_, n_calibration_, scorer_
        As in `HardCF`.

    References
    ----------
    C. Mohri, T. Hashimoto. Language Models with Conformal Factuality Guarantees.
    ICML 2024.

    Examples
    --------
    >>> from skdcf import IndependentFactuality
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> IndependentFactuality(alpha=0.2).fit(graphs, y).n_calibration_
    200
    """

    coherent = False

    def __init__(
        self,
        scorer=None,
        *,
        alpha=0.1,
        ties="exclude",
        calibration_size=None,
        random_state=None,
    ):
        self.scorer = scorer
        self.alpha = alpha
        self.ties = ties
        self.calibration_size = calibration_size
        self.random_state = random_state

    def _make_scorer(self, batch):
        return as_scorer(self.scorer, batch)


class SingleFeatureCF(BaseFilter):
    """Coherent factuality on one feature, mixed with that of the claims below.

    Parameters
    ----------
    feature : str or int, default=None
        Name or column number. None is "frequency-score" where there is such a
        feature, else the first column.
    beta_mix : float, default=0.0
        Weight of the median over descendants, in [0, 1]; see `FrequencyScorer`.
    over : {"descendants", "children"}, default="descendants"
        As in `FrequencyScorer`.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `HardCF`.
    calibration_size : float or int, optional
        As in `HardCF`.
    random_state : int, RandomState or None, default=None
        Seeds the split and the jitter.

    Attributes
    ----------
    nonconformity_scores_, threshold_, n_calibration_, scorer_
        As in `HardCF`.

    Examples
    --------
    >>> from skdcf import SingleFeatureCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> cf = SingleFeatureCF("nx_reachability", beta_mix=0.5).fit(graphs, y)
    >>> cf.scorer_.beta_mix
    0.5
    """

    coherent = True

    def __init__(
        self,
        feature=None,
        *,
        beta_mix=0.0,
        over="descendants",
        alpha=0.1,
        ties="exclude",
        calibration_size=None,
        random_state=None,
    ):
        self.feature = feature
        self.beta_mix = beta_mix
        self.over = over
        self.alpha = alpha
        self.ties = ties
        self.calibration_size = calibration_size
        self.random_state = random_state

    def _make_scorer(self, batch):
        feature = self.feature
        if feature is None:
            named = FREQUENCY in (batch.feature_names or ())
            feature = FREQUENCY if named else 0
        return FrequencyScorer(self.beta_mix, self.over, feature=feature)
