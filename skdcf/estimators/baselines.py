"""The methods that coherent conformal filters are compared with, as presets."""

from ..scorers import ClassifierScorer, FrequencyScorer, as_scorer
from ..scorers._fixed import FREQUENCY
from ._base import BaseFilter
from ._trained import TrainedFilter


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


class BoostedIndependentFactuality(TrainedFilter):
    """Conformal factuality with a trained score and without a graph.

    `CoherentConformalFilter` with ``coherent=False`` in training and afterwards.

    Parameters
    ----------
    scorer : {"linear"} or differentiable scorer, default="linear"
        As in `CoherentConformalFilter`.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim.
    relaxation : PathRelaxation, GridRelaxation or None, default=None
        As in `CoherentConformalFilter`.
    calibration_size : float or int, default=0.3
        Share or number of the problems held out of training for calibration.
    ties : {"exclude", "jitter"}, default="exclude"
        As in `HardCF`.
    random_state : int, RandomState or None, default=None
        Seeds the split and the jitter.

    Attributes
    ----------
    nonconformity_scores_, threshold_, n_calibration_, scorer_, coef_, loss_curve_
        As in `CoherentConformalFilter`.

    References
    ----------
    J. Cherian, I. Gibbs, E. Candès. Large Language Model Validity via Enhanced
    Conformal Prediction Methods. NeurIPS 2024.

    Examples
    --------
    >>> from skdcf import BoostedIndependentFactuality
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> BoostedIndependentFactuality(random_state=0).fit(graphs, y).n_calibration_
    60
    """

    coherent = False
    optimizer, loss, start = "lbfgs", "log-retention", "coherent"
    shrinkage, unit_variance, max_iter = 100.0, True, None
    learning_rate, validation_size, patience = 0.015, None, 10
    warm_start, verbose = False, 0

    def __init__(
        self,
        scorer="linear",
        *,
        alpha=0.1,
        relaxation=None,
        calibration_size=0.3,
        ties="exclude",
        random_state=None,
    ):
        self.scorer = scorer
        self.alpha = alpha
        self.relaxation = relaxation
        self.calibration_size = calibration_size
        self.ties = ties
        self.random_state = random_state


class XGBoostCF(BaseFilter):
    """Coherent factuality on boosted trees, trained to classify claims.

    Needs ``xgboost``.

    Parameters
    ----------
    max_depth : int, default=3
        Depth of each tree.
    n_estimators : int, default=100
        Number of trees.
    learning_rate : float, default=0.1
        Shrinkage of each tree.
    label : {"coherent", "own"}, default="coherent"
        What the trees learn; see `ClassifierScorer`.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `HardCF`.
    calibration_size : float or int, default=0.3
        Share or number of the problems held out of training for calibration.
    random_state : int, RandomState or None, default=None
        Seeds the split and the trees.

    Attributes
    ----------
    nonconformity_scores_, threshold_, n_calibration_, scorer_
        As in `HardCF`.

    Examples
    --------
    >>> from skdcf import XGBoostCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> XGBoostCF(random_state=0).fit(graphs, y).n_calibration_
    60
    """

    coherent = True

    def __init__(
        self,
        *,
        max_depth=3,
        n_estimators=100,
        learning_rate=0.1,
        label="coherent",
        alpha=0.1,
        ties="exclude",
        calibration_size=0.3,
        random_state=None,
    ):
        self.max_depth = max_depth
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.label = label
        self.alpha = alpha
        self.ties = ties
        self.calibration_size = calibration_size
        self.random_state = random_state

    def _make_scorer(self, batch):
        return ClassifierScorer(label=self.label)

    def _fit_scorer(self, scorer, batch, labels, groups, rng):
        from xgboost import XGBClassifier

        trees = XGBClassifier(
            max_depth=self.max_depth,
            n_estimators=self.n_estimators,
            learning_rate=self.learning_rate,
            n_jobs=1,
            random_state=int(rng.randint(2**31 - 1)),
        )
        return scorer.set_params(estimator=trees).fit(batch, labels)
