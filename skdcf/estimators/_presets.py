"""The methods that coherent conformal filters are compared with, as presets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from numpy.random import RandomState

from ..scorers import ClassifierScorer, FrequencyScorer
from ._conformal import CoherentConformalFilter
from ._hard import HardCF

if TYPE_CHECKING:
    from ..guarantees import Guarantee
    from ..relaxation import Relaxation
    from ..training import SoftTraining


class IndependentFactuality(HardCF):
    """Conformal factuality without a graph: every claim stands for itself.

    Parameters
    ----------
    scorer : str, int, scorer, classifier, callable or None, default=None
        As in `HardCF`.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `HardCF`.
    calibration_size : float, int or "cross", optional
        As in `HardCF`.
    random_state : int, RandomState or None, default=None
        Seeds the split and the jitter.
    guarantee : Guarantee, optional
        As in `HardCF`.

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

    def __init__(
        self,
        scorer: Any = None,
        *,
        alpha: float = 0.1,
        ties: Literal["exclude", "include", "jitter"] = "exclude",
        calibration_size: float | int | Literal["cross"] | None = None,
        random_state: int | RandomState | None = None,
        guarantee: Guarantee | None = None,
    ) -> None:
        super().__init__(
            scorer,
            alpha=alpha,
            coherent=False,
            ties=ties,
            calibration_size=calibration_size,
            random_state=random_state,
            guarantee=guarantee,
        )


class SingleFeatureCF(HardCF):
    """Coherent factuality on one feature, mixed with that of the claims below.

    Parameters
    ----------
    feature : str or int, default=None
        Name or column number. None is "frequency-score" where there is such a
        feature, else the first column.
    beta_mix : float, default=0.0
        Weight of the median over descendants, in [0, 1]; see `~skdcf.scorers.FrequencyScorer`.
    over : {"descendants", "children"}, default="descendants"
        As in `~skdcf.scorers.FrequencyScorer`.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `HardCF`.
    calibration_size : float, int or "cross", optional
        As in `HardCF`.
    random_state : int, RandomState or None, default=None
        Seeds the split and the jitter.
    guarantee : Guarantee, optional
        As in `HardCF`.

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

    def __init__(
        self,
        feature: str | int | None = None,
        *,
        beta_mix: float = 0.0,
        over: Literal["descendants", "children"] = "descendants",
        alpha: float = 0.1,
        ties: Literal["exclude", "include", "jitter"] = "exclude",
        calibration_size: float | int | Literal["cross"] | None = None,
        random_state: int | RandomState | None = None,
        guarantee: Guarantee | None = None,
    ) -> None:
        super().__init__(
            alpha=alpha,
            ties=ties,
            calibration_size=calibration_size,
            random_state=random_state,
            guarantee=guarantee,
        )
        self.feature = feature
        self.beta_mix = beta_mix
        self.over = over

    def _wanted_scorer(self, batch):
        feature = self.feature
        if feature is None:
            usual = FrequencyScorer().feature
            feature = usual if usual in (batch.feature_names or ()) else 0
        return FrequencyScorer(self.beta_mix, self.over, feature=feature)


class BoostedIndependentFactuality(CoherentConformalFilter):
    """Conformal factuality with a trained score and without a graph.

    `CoherentConformalFilter` with ``coherent=False`` in training and afterwards.

    Parameters
    ----------
    scorer : default="linear"
        As in `CoherentConformalFilter`.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim.
    relaxation, training, calibration_size, ties, random_state, verbose
        As in `CoherentConformalFilter`.
    guarantee : Guarantee, optional
        As in `HardCF`.

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
    79
    """

    coherent = False

    def __init__(
        self,
        scorer: Any = "linear",
        *,
        alpha: float = 0.1,
        relaxation: Relaxation | None = None,
        training: SoftTraining | None = None,
        calibration_size: float | int | Literal["cross"] | None = None,
        ties: Literal["exclude", "jitter"] = "exclude",
        random_state: int | RandomState | None = None,
        verbose: int = 0,
        guarantee: Guarantee | None = None,
    ) -> None:
        super().__init__(
            scorer,
            alpha=alpha,
            relaxation=relaxation,
            training=training,
            coherent=False,
            calibration_size=calibration_size,
            ties=ties,
            random_state=random_state,
            verbose=verbose,
            guarantee=guarantee,
        )


class XGBoostCF(HardCF):
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
        What the trees learn; see `~skdcf.scorers.ClassifierScorer`.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `HardCF`.
    calibration_size : float, int or "cross", optional
        As in `HardCF`.
    random_state : int, RandomState or None, default=None
        Seeds the split and the jitter.
    guarantee : Guarantee, optional
        As in `HardCF`.

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
    79
    """

    def __init__(
        self,
        *,
        max_depth: int = 3,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        label: Literal["own", "coherent"] = "coherent",
        alpha: float = 0.1,
        ties: Literal["exclude", "include", "jitter"] = "exclude",
        calibration_size: float | int | Literal["cross"] | None = None,
        random_state: int | RandomState | None = None,
        guarantee: Guarantee | None = None,
    ) -> None:
        super().__init__(
            alpha=alpha,
            ties=ties,
            calibration_size=calibration_size,
            random_state=random_state,
            guarantee=guarantee,
        )
        self.max_depth = max_depth
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.label = label

    def _wanted_scorer(self, batch):
        from xgboost import XGBClassifier

        trees = XGBClassifier(
            max_depth=self.max_depth,
            n_estimators=self.n_estimators,
            learning_rate=self.learning_rate,
            n_jobs=1,
        )
        return ClassifierScorer(trees, label=self.label)
