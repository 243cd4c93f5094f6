"""Filters with the settings of the paper and of the methods that it is compared with."""

from __future__ import annotations

from dataclasses import KW_ONLY, field
from typing import TYPE_CHECKING, Any, Literal

from ._checks import import_extra
from ._parameters import HasMethods, settings
from .filters import ConformalFilter
from .scorers import ClassifierScorer, ConfTrScorer, FrequencyScorer
from .training import SoftTraining

if TYPE_CHECKING:
    from .relaxation import Relaxation


@settings
class CoherentConformalFilter(ConformalFilter):
    """Filter for coherent factuality, with a scorer that is trained to keep true claims.

    The default scorer is a linear model of the chance that a claim is the first false one. From
    these chances, the price of each claim follows: the risk of keeping it, relative to the value
    of keeping it. All weights are trained at ``alpha`` through the price and through
    differentiable versions of path risk, calibration and prediction. Calibration, prediction and
    the guarantee are the same as in `HardCF`. The scorer is not trained on the calibration
    problems.

    On published data sets, the price accounts for most of what the default gains over an unpriced
    logistic regression. The training itself changes little there. It keeps more claims on
    generated problems, where training problems are many.

    Parameters
    ----------
    scorer : "linear", differentiable model or any scorer, default="linear"
        The scorer. "linear" is `~skdcf.scorers.ConfTrScorer` with a linear model. Other
        differentiable models, such as `~skdcf.scorers.MLPModel`, are trained in the same way. All
        other scorers that `HardCF` accepts can also be used.
    features : "auto", transformer, Pipeline or None, default="auto"
        Transformer that computes the feature columns used by the scorer. The transformer can come
        from `skdcf.features` or scikit-learn, or be a Pipeline of such transformers. The
        transformer is fitted on training problems only, and applied to all problems passed to the
        filter. If "auto", the problems' own columns are used, or those of
        `~skdcf.features.reasoning_features` if the problems have texts only. If None, the
        problems' own columns are used.
    alpha : float, default=0.1
        Maximum proportion of problems in which a false claim is kept, in the interval (0, 1). The
        scorer is trained for this level unless ``guarantee`` defines its own bound.
    edges : "given", "none" or a function of `skdcf.edges`, default="given"
        Dependencies between claims. "given" uses the edges of the problems. "none" removes the
        edges after the columns are computed, so the claims are independent. A function, such as
        `~skdcf.edges.chain_edges`, computes the edges of all problems passed to the filter.
    calibration_size : float, int, "all" or None, default=None
        Proportion or number of problems that are held out for calibration. If "all", all problems
        are used for training and for calibration, which helps with 20 to 40 of them (see the
        user guide). "linear" is then the priced logistic regression at which training starts,
        and it is fitted again for each new answer. If None, about two
        fifths of the problems are held out for calibration. The number n of calibration problems
        is chosen to make ``alpha (n + 1)`` an integer, because a few additional problems would
        not increase the rank of the threshold. If nothing needs fitting, all problems are used
        for calibration. If 0, all problems are used for training, and the filter cannot predict
        before ``calibrate`` is called, for example on answers that people judged.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `HardCF`.
    guarantee : Guarantee, optional
        As in `HardCF`.
    online : bool, default=False
        Whether to compute the risk of each claim only from this claim and earlier claims. If
        True, `stream` can make decisions while an answer is being written.
    random_state : int, RandomState or None, default=None
        Seed for the split and the initial parameters. Training with a fixed seed is bit-for-bit
        reproducible, and the same for every order of the problems.
    n_jobs : int, optional
        Number of parallel jobs, as in scikit-learn. The results are identical for all values.
    verbose : int, default=0
        Whether to show progress bars for folds, levels and training iterations.
    relaxation : PathRelaxation, GridRelaxation or None, default=None
        Soft version of calibration and prediction used in training. If None, ``PathRelaxation()``
        is used. This parameter is used only for scorers that are trained through soft
        calibration.
    training : SoftTraining or None, default=None
        Settings of the training. If None, ``SoftTraining()`` is used. Settings that are None are
        replaced with the default values of the scorer. This parameter is used only for scorers
        that use ``relaxation``.

    Attributes
    ----------
    coef_ : ndarray of shape (n_columns,)
        Coefficients of a linear model for the original columns, which
        ``scorer_.linear_terms`` names. Before the coefficients are applied, columns are
        clipped at 3 standard deviations from their mean.
    loss_curve_ : list of float
        Training objective per iteration.
    nonconformity_scores_ : ndarray of shape (n_calibration,)
        Sorted nonconformity scores, which are +inf for problems without a false claim.
    max_path_risks_ : ndarray of shape (n_calibration,) or None
        The largest path risk of each problem, in sorted order.
    threshold_ : float
        Conformal threshold at ``alpha``, or NaN if ``guarantee`` computes one threshold per
        problem.
    calibration_ : Calibration
        Result of the calibration.
    n_calibration_ : int
        Number of calibration problems.
    scorer_ : Scorer
        The trained scorer.
    n_features_in_ : int
        Number of features per claim.
    feature_names_in_ : ndarray of str
        Names of the features, available only if the features have names.
    classes_ : ndarray of shape (2,)
        Values of y that mean false and true, in this order. The attribute ``classes_`` exists
        only after fitting on a table.
    features_ : transformer or None
        The fitted ``features``.
    share_ : float or None
        Proportion of answers that may pass, chosen by `fit` if the guarantee has ``show="auto"``,
        and None otherwise.
    unused_indices_ : ndarray of int
        Indices in X of the problems that were available for calibration but were not needed.
        After `calibrate_parts`, the problems of all parts are numbered in the order of the parts.
    provenance_ : dict
        Values of each provenance key that the calibration problems had. A value of None means that
        the key was missing in some of these problems.

    References
    ----------
    N. Hittesdorf, M. Salzetta, L. Cheng. Differentiable Conformal Training for LLM
    Reasoning Factuality. arXiv:2604.20098.

    Examples
    --------
    >>> from skdcf import CoherentConformalFilter, HardCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(600, random_state=0, return_X_y=True)
    >>> dcf = CoherentConformalFilter(alpha=0.1, random_state=0)
    >>> dcf = dcf.fit(graphs[:400], y[:400])
    >>> frequency = HardCF("frequency-score", alpha=0.1).fit(graphs[:400], y[:400])
    >>> dcf.score(graphs[400:], y[400:]) > frequency.score(graphs[400:], y[400:])
    True
    >>> dcf.n_calibration_, dcf.scorer_.gain
    (159, 0.5)
    """

    scorer: Any = "linear"
    _: KW_ONLY
    relaxation: Relaxation | None = None  # type: ignore[assignment]
    training: SoftTraining | None = None  # type: ignore[assignment]

    _parameter_constraints = ConformalFilter._parameter_constraints | {
        "relaxation": [None, HasMethods(["plan", "true_claims", "validate"])],
        "training": [None, SoftTraining],
    }

    def _make_columns(self, problems, train):
        problems, scorer = super()._make_columns(problems, train)
        is_trained = scorer.uses_relaxation and self.calibration_size != "all"
        for name in ("relaxation", "training"):
            if getattr(self, name) is not None and not is_trained:
                raise ValueError(
                    f"{name} has no effect, because {scorer!r} is not trained through calibration "
                    f"if calibration_size={self.calibration_size!r}. Leave {name} at None, or use "
                    'scorer="linear" or a model such as MLPModel(), and calibration_size=None'
                )
        return problems, scorer

    @classmethod
    def from_paper(
        cls, dataset: Literal["math", "felm"], alpha: float, **changes: Any
    ) -> CoherentConformalFilter:
        """Return a filter with the hyperparameters that are listed in the paper.

        The published procedure trains the confidence itself, without a price, and uses the grid
        relaxation, Adam and random initial parameters, without shrinkage.

        Parameters
        ----------
        dataset : {"math", "felm"}
            Data set for which the hyperparameters were published.
        alpha : float
            Level for which the hyperparameters were published.
        **changes
            Further constructor arguments.

        Returns
        -------
        filter : CoherentConformalFilter
            The unfitted filter.

        Examples
        --------
        >>> from skdcf import CoherentConformalFilter
        >>> CoherentConformalFilter.from_paper("math", 0.05).relaxation.ancestor_weight
        6.0
        """
        from .relaxation import GridRelaxation

        settings: dict[str, Any] = {
            "scorer": ConfTrScorer(gain=None),
            "alpha": alpha,
            "relaxation": GridRelaxation.from_paper(dataset, alpha),
            "training": SoftTraining.from_paper(),
        }
        return cls(**settings | changes)


@settings
class HardCF(ConformalFilter):
    """Filter for coherent factuality, with a conformal threshold for the path risks of claims.

    The probability that no false claim of a new problem is kept is at least ``1 - alpha``. A
    claim is kept only if all claims that it depends on are also kept.

    Parameters
    ----------
    scorer : str, int, Scorer, classifier, model, callable or None, default=None
        Method for computing the confidence in each claim. The scorer can be a feature name or
        column index, a scorer from `skdcf.scorers` or its name, or a function that accepts a
        GraphBatch and scores each problem separately. A scikit-learn classifier or pipeline is
        trained on claims, and a differentiable model is trained through a soft version of
        calibration. By default, `~skdcf.scorers.FrequencyScorer` is used if a feature is named
        "frequency-score", and a priced logistic regression on claims is used otherwise. A scorer
        that has already been fitted is fitted again.
    features : "auto", transformer, Pipeline or None, default="auto"
        Transformer that computes the feature columns used by the scorer. The transformer can come
        from `skdcf.features` or scikit-learn, or be a Pipeline of such transformers. The
        transformer is fitted on training problems only, and applied to all problems passed to the
        filter. If "auto", the problems' own columns are used, or those of
        `~skdcf.features.reasoning_features` if the problems have texts only. If None, the
        problems' own columns are used.
    alpha : float, default=0.1
        Maximum proportion of problems in which a false claim is kept, in the interval (0, 1).
    edges : "given", "none" or a function of `skdcf.edges`, default="given"
        Dependencies between claims. "given" uses the edges of the problems. "none" removes the
        edges after the columns are computed, so the claims are independent. A function, such as
        `~skdcf.edges.chain_edges`, computes the edges of all problems passed to the filter.
    calibration_size : float or int, optional
        Proportion or number of problems that are held out for calibration. If None, about two
        fifths of the problems are held out for calibration. The number n of calibration problems
        is chosen to make ``alpha (n + 1)`` an integer, because a few additional problems would
        not increase the rank of the threshold. If nothing needs fitting, all problems are used
        for calibration. If 0, all problems are used for training, and the filter cannot predict
        before ``calibrate`` is called, for example on answers that people judged.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        How to treat a claim whose path risk equals the threshold. "exclude" drops such a claim,
        which preserves the guarantee. "include" keeps such a claim, as in the original code of
        the method, but the guarantee does not hold if scores are tied. "jitter" breaks ties with
        a seeded hash of the problem, which preserves the guarantee and keeps more claims than
        "exclude".
    guarantee : Guarantee, optional
        The guarantee, including the groups for which it holds. Use an object from
        `skdcf.guarantees`, such as ``NoFalseClaim(delta=0.05)`` or ``NoFalseClaim(by="model")``.
        If None, ``NoFalseClaim()`` is used. ``skdcf fit`` uses ``NoFalseClaim(show="auto")``.
    online : bool, default=False
        Whether to compute the risk of each claim only from this claim and earlier claims. If
        True, `stream` can make decisions while an answer is being written.
    random_state : int, RandomState or None, default=None
        Seed for the split and the jitter. The filter is the same for every order of the
        problems.
    n_jobs : int, optional
        As in `CoherentConformalFilter`.
    verbose : int, default=0
        As in `CoherentConformalFilter`.

    Attributes
    ----------
    nonconformity_scores_ : ndarray of shape (n_calibration,)
        Sorted nonconformity scores, which are +inf for problems without a false claim.
    max_path_risks_ : ndarray of shape (n_calibration,) or None
        The largest path risk of each problem, in sorted order.
    threshold_ : float
        Conformal threshold at ``alpha``, or NaN if ``guarantee`` computes one threshold per
        problem.
    calibration_ : Calibration
        Result of the calibration.
    n_calibration_ : int
        Number of calibration problems.
    scorer_ : object
        The fitted scorer.
    n_features_in_ : int
        Number of features per claim.
    feature_names_in_ : ndarray of str
        Names of the features, available only if the features have names.
    classes_ : ndarray of shape (2,)
        Values of y that mean false and true, in this order. The attribute ``classes_`` exists
        only after fitting on a table.
    features_ : transformer or None
        The fitted ``features``.
    share_ : float or None
        Proportion of answers that may pass, chosen by `fit` if the guarantee has ``show="auto"``,
        and None otherwise.
    unused_indices_ : ndarray of int
        Indices in X of the problems that were available for calibration but were not needed.
        After `calibrate_parts`, the problems of all parts are numbered in the order of the parts.
    provenance_ : dict
        Values of each provenance key that the calibration problems had. A value of None means that
        the key was missing in some of these problems.

    Notes
    -----
    A step that is fitted on labels must be passed as ``features=``. In a pipeline before the
    filter, the step would also be fitted on the calibration problems. In an experiment with this
    mistake, the coverage was 0.741 with LinearDiscriminantAnalysis and 0.859 with SelectKBest,
    instead of 0.9. To search for settings, use `skdcf.evaluation.CalibratedSearch`. It rejects a
    search over ``alpha``, ``ties``, ``edges`` or ``guarantee``, because a weaker guarantee always
    keeps more claims.

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


@settings
class IndependentFactuality(HardCF):
    """Filter for conformal factuality that decides on each claim independently.

    Parameters
    ----------
    scorer : str, int, scorer, classifier, callable or None, default=None
        As in `HardCF`.
    features : transformer or Pipeline, optional
        As in `HardCF`.
    alpha : float, default=0.1
        Maximum proportion of problems in which a false claim is kept, in the interval (0, 1).
    calibration_size : float or int, optional
        As in `HardCF`.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `HardCF`.
    guarantee : Guarantee, optional
        As in `HardCF`.
    random_state : int, RandomState or None, default=None
        Seed for the split and the jitter. The filter is the same for every order of the
        problems.
    n_jobs : int, optional
        As in `CoherentConformalFilter`.
    verbose : int, default=0
        As in `CoherentConformalFilter`.

    Attributes
    ----------
    nonconformity_scores_, max_path_risks_ : ndarray
        As in `HardCF`.
    threshold_, calibration_, n_calibration_, scorer_, features_, share_, provenance_ : object
        As in `HardCF`.
    n_features_in_, feature_names_in_, unused_indices_ : int and ndarray
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
    199
    """

    edges: Any = field(default="none", init=False)
    online: bool = field(default=False, init=False)


@settings
class SingleFeatureCF(HardCF):
    """Filter for coherent factuality that uses a single feature as the confidence.

    The feature can be mixed with its median over the descendants of each claim.

    Parameters
    ----------
    feature : str or int, default=None
        Name or column index of the feature. By default, the feature "frequency-score" is used if
        it exists, and the first column is used otherwise.
    features : transformer or Pipeline, optional
        As in `HardCF`.
    alpha : float, default=0.1
        Maximum proportion of problems in which a false claim is kept, in the interval (0, 1).
    edges : "given", "none" or a function of `skdcf.edges`, default="given"
        Dependencies between claims, as in `HardCF`.
    calibration_size : float or int, optional
        As in `HardCF`.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `HardCF`.
    guarantee : Guarantee, optional
        As in `HardCF`.
    online : bool, default=False
        Whether to make decisions while an answer is being written, as in `HardCF`.
    random_state : int, RandomState or None, default=None
        Seed for the split and the jitter. The filter is the same for every order of the
        problems.
    n_jobs : int, optional
        As in `CoherentConformalFilter`.
    verbose : int, default=0
        As in `CoherentConformalFilter`.
    beta_mix : float, default=0.0
        Weight of the median over descendants, between 0 and 1 (see
        `~skdcf.scorers.FrequencyScorer`).
    over : {"descendants", "children"}, default="descendants"
        As in `~skdcf.scorers.FrequencyScorer`.

    Attributes
    ----------
    nonconformity_scores_, max_path_risks_ : ndarray
        As in `HardCF`.
    threshold_, calibration_, n_calibration_, scorer_, features_, share_, provenance_ : object
        As in `HardCF`.
    n_features_in_, feature_names_in_, unused_indices_ : int and ndarray
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

    scorer: Any = field(default=None, init=False)
    feature: str | int | None = None
    _: KW_ONLY
    beta_mix: float = 0.0
    over: Literal["descendants", "children"] = "descendants"

    def _wanted_scorer(self, batch):
        feature = self.feature
        if feature is None:
            name = "frequency-score"
            feature = name if name in batch.column_names else 0
        return FrequencyScorer(feature=feature, beta_mix=self.beta_mix, over=self.over)


@settings
class BoostedIndependentFactuality(CoherentConformalFilter):
    """Filter for conformal factuality with a trained scorer and without a graph.

    This filter is equivalent to `CoherentConformalFilter` with ``edges="none"`` in training and
    prediction.

    Parameters
    ----------
    scorer : default=None
        As in `CoherentConformalFilter`. If None, ``ConfTrScorer(gain=None)`` is used, a linear
        model without a price.
    features : transformer or Pipeline, optional
        As in `HardCF`.
    alpha : float, default=0.1
        Maximum proportion of problems in which a false claim is kept, in the interval (0, 1).
    calibration_size : float or int, optional
        As in `CoherentConformalFilter`.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `CoherentConformalFilter`.
    guarantee : Guarantee, optional
        As in `HardCF`.
    online : bool, default=False
        Whether to make decisions while an answer is being written, as in `HardCF`.
    random_state : int, RandomState or None, default=None
        As in `CoherentConformalFilter`.
    n_jobs : int, optional
        As in `CoherentConformalFilter`.
    verbose : int, default=0
        As in `CoherentConformalFilter`.
    relaxation : PathRelaxation or GridRelaxation, optional
        As in `CoherentConformalFilter`.
    training : SoftTraining, optional
        As in `CoherentConformalFilter`.

    Attributes
    ----------
    coef_, loss_curve_ : ndarray and list
        As in `CoherentConformalFilter`.
    nonconformity_scores_, max_path_risks_ : ndarray
        As in `CoherentConformalFilter`.
    threshold_, calibration_, n_calibration_, scorer_, features_, share_, provenance_ : object
        As in `CoherentConformalFilter`.
    n_features_in_, feature_names_in_, unused_indices_ : int and ndarray
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

    scorer: Any = None
    edges: Any = field(default="none", init=False)

    def _wanted_scorer(self, batch):
        return ConfTrScorer(gain=None) if self.scorer is None else self.scorer


@settings
class XGBoostCF(HardCF):
    """Filter for coherent factuality with boosted trees that are trained to classify claims.

    This filter requires the ``xgboost`` package.

    Parameters
    ----------
    features : transformer or Pipeline, optional
        As in `HardCF`.
    alpha : float, default=0.1
        Maximum proportion of problems in which a false claim is kept, in the interval (0, 1).
    edges : "given", "none" or a function of `skdcf.edges`, default="given"
        Dependencies between claims, as in `HardCF`.
    calibration_size : float or int, optional
        As in `HardCF`.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `HardCF`.
    guarantee : Guarantee, optional
        As in `HardCF`.
    online : bool, default=False
        Whether to make decisions while an answer is being written, as in `HardCF`.
    random_state : int, RandomState or None, default=None
        Seed for the split and the jitter. The filter is the same for every order of the
        problems.
    n_jobs : int, optional
        As in `CoherentConformalFilter`.
    verbose : int, default=0
        As in `CoherentConformalFilter`.
    max_depth : int, default=3
        Maximum depth of each tree.
    n_estimators : int, default=100
        Number of trees.
    learning_rate : float, default=0.1
        Shrinkage of each tree.
    target : {"coherent", "own"}, default="coherent"
        Training target of the trees, as in `~skdcf.scorers.ClassifierScorer`.

    Attributes
    ----------
    nonconformity_scores_, max_path_risks_ : ndarray
        As in `HardCF`.
    threshold_, calibration_, n_calibration_, scorer_, features_, share_, provenance_ : object
        As in `HardCF`.
    n_features_in_, feature_names_in_, unused_indices_ : int and ndarray
        As in `HardCF`.

    Examples
    --------
    >>> from skdcf import XGBoostCF
    >>> from skdcf.datasets import make_reasoning_graphs
    >>> graphs, y = make_reasoning_graphs(200, random_state=0, return_X_y=True)
    >>> XGBoostCF(random_state=0).fit(graphs, y).n_calibration_
    79
    """

    scorer: Any = field(default=None, init=False)
    _: KW_ONLY
    max_depth: int = 3
    n_estimators: int = 100
    learning_rate: float = 0.1
    target: Literal["own", "coherent"] = "coherent"

    def _wanted_scorer(self, batch):
        xgboost = import_extra("xgboost", "xgboost")
        trees = xgboost.XGBClassifier(
            max_depth=self.max_depth,
            n_estimators=self.n_estimators,
            learning_rate=self.learning_rate,
            n_jobs=1,
        )
        return ClassifierScorer(trees, target=self.target, gain=None)
