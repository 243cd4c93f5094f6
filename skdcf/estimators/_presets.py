"""The filters that users take: one class with several defaults."""

from __future__ import annotations

from dataclasses import KW_ONLY, field
from typing import Any, Literal

from .._checks import import_extra
from .._parameters import settings
from ..scorers import ClassifierScorer, FrequencyScorer
from ..training import SoftTraining
from ._filter import ConformalFilter


@settings
class CoherentConformalFilter(ConformalFilter):
    """Coherent factuality with a scorer that learns to keep true claims.

    The scorer is trained for what happens to its scores afterwards: coherence over the
    graph, calibration at ``alpha``, filtering. Calibration and prediction then are those
    of `HardCF`, on problems that training has not seen, and with the same guarantee.

    Parameters
    ----------
    scorer : "stack", "linear", "neyman-pearson", model or any scorer, default="stack"
        "linear" is the method of the paper: a linear model, trained through a soft version
        of the procedure to keep as many true claims as possible. Other differentiable
        models, such as `~skdcf.scorers.MLPModel`, are trained in the same way.
        "neyman-pearson" estimates how likely an error begins at each claim, and orders
        claims by what keeping them costs in risk (`~skdcf.scorers.NeymanPearsonScorer`).
        "stack" adds the scores of "neyman-pearson" and of a logistic regression, with weights
        that are trained in the same way as those of "linear"
        (`~skdcf.scorers.StackingScorer`). All that `HardCF` takes may be passed here as well.
    features : transformer or Pipeline, optional
        Columns for the scorer, made by the filter: a transformer of `skdcf.features`, one
        of scikit-learn, or a Pipeline of them. What learns is fitted to training problems
        only; it is applied wherever problems come in. None is the problems' own columns.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim; also the level that
        is trained for, unless ``guarantee`` has a bound.
    relaxation : PathRelaxation, GridRelaxation or None, default=None
        How the procedure is softened; None is ``PathRelaxation()``. Refused where the
        scorer is not trained through it.
    training : SoftTraining or None, default=None
        How the model is trained; None is ``SoftTraining()``, whose own None the scorer
        resolves. Refused where
        ``relaxation`` is.
    edges : "given", "none" or a rule of `skdcf.edges`, default="given"
        What a claim builds on. "given" takes the edges of the problems. "none" drops them
        after the columns are computed, so that claims are independent. A rule, such as
        `~skdcf.edges.chain_edges`, is applied wherever problems come in.
    calibration_size : float, int or None, default=None
        Share or number of the problems held out of training for calibration. None
        holds out about two fifths, such that ``alpha (n + 1)`` is a whole number and no
        problem is wasted; with a scorer that does not learn, all problems calibrate.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `HardCF`.
    guarantee : Guarantee, optional
        As in `HardCF`.
    online : bool, default=False
        Whether the risk of a claim is computed from the claims up to it, so that `stream`
        can decide while an answer is written.
    random_state : int, RandomState or None, default=None
        Seeds splits and initial parameters; training is reproducible to the bit.
    n_jobs : int, optional
        Jobs at a time, as in scikit-learn: folds of "stack", and the levels of
        `~skdcf.evaluation.fit_levels`. Decisions are the same to the bit for every value.
    verbose : int, default=0
        Whether to show progress bars of folds, levels and training iterations.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of a linear model, per unit of the features as passed. Features more
        than 3 deviations from their mean count as if they were 3. Not for "stack".
    loss_curve_ : list of float
        Training objective per iteration; of the last step with "stack".
    n_iter_ : int
        Number of iterations.
    nonconformity_scores_ : ndarray of shape (n_calibration,)
        Sorted; +inf for a problem without a false claim.
    whole_answer_scores_ : ndarray of shape (n_calibration,)
        Largest path risk of each problem with a false claim, sorted; +inf for the others.
    max_path_risks_ : ndarray of shape (n_calibration,) or None
        Largest path risk of each problem, sorted.
    threshold_ : float
        Conformal threshold at ``alpha``; NaN where ``guarantee`` gives problems
        thresholds of their own.
    calibration_ : Calibration
        What the guarantee made of the calibration problems.
    n_calibration_ : int
        Number of calibration problems.
    scorer_ : Scorer
        The trained scorer; that of "stack" has the weights in ``selection_``.
    n_features_in_ : int
        Number of features per claim.
    feature_names_in_ : ndarray of str
        Where the features are named.
    classes_ : ndarray of shape (2,)
        After a fit to a table: the values of y that mean false and true, in this order.
    features_ : transformer or None
        What ``features=`` became when it was fitted.
    share_ : float or None
        Share of the answers that may pass, if `fit` chose it (``show="auto"``).
    unused_indices_ : ndarray of int
        Positions, among the problems as passed, of those that were free to calibrate and
        were not needed. After `calibrate_parts` a row (part, position in its call) for each.
    provenance_ : dict
        How the calibration problems were made, and what their labels mean.

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
    >>> dcf.n_calibration_, dcf.scorer_.selection_.scorers
    (159, ('neyman-pearson', 'regression'))
    """

    scorer: Any = "stack"

    @classmethod
    def from_paper(
        cls, dataset: Literal["math", "felm"], alpha: float, **changes: Any
    ) -> CoherentConformalFilter:
        """The published procedure with its tabled settings.

        Grid relaxation, Adam, random start, no shrinkage.

        Parameters
        ----------
        dataset : {"math", "felm"}
        alpha : float
            Of the table's row.
        **changes
            Further constructor arguments.

        Returns
        -------
        CoherentConformalFilter

        Examples
        --------
        >>> from skdcf import CoherentConformalFilter
        >>> CoherentConformalFilter.from_paper("math", 0.05).relaxation.ancestor_weight
        6.0
        """
        from ..relaxation import GridRelaxation

        settings: dict[str, Any] = {"scorer": "linear", "alpha": alpha}
        settings["relaxation"] = GridRelaxation.from_paper(dataset, alpha)
        settings["training"] = SoftTraining.from_paper()
        return cls(**settings | changes)


@settings
class HardCF(ConformalFilter):
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
    features : transformer or Pipeline, optional
        Columns for the scorer, made by the filter: a transformer of `skdcf.features`, one
        of scikit-learn, or a Pipeline of them. What learns is fitted to training problems
        only; it is applied wherever problems come in. None is the problems' own columns.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim.
    relaxation, training : optional
        How a differentiable model is trained, as in `CoherentConformalFilter`. Refused
        where the scorer is not trained through calibration.
    edges : "given", "none" or a rule of `skdcf.edges`, default="given"
        What a claim builds on. "given" takes the edges of the problems. "none" drops them
        after the columns are computed, so that claims are independent. A rule, such as
        `~skdcf.edges.chain_edges`, is applied wherever problems come in.
    calibration_size : float or int, optional
        Share or number of the problems held out of training for calibration. None
        holds out about two fifths, such that ``alpha (n + 1)`` is a whole number and no
        problem is wasted; with a scorer that does not learn, all problems calibrate.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        What to do with a claim whose path risk equals the threshold. "exclude" keeps
        the guarantee. "include" reproduces the code of the method's authors and
        loses the guarantee where scores are tied. "jitter" breaks ties by a
        seeded hash of the problem, which keeps the guarantee and more claims.
    guarantee : Guarantee, optional
        What is promised, and for whom; a value of `skdcf.guarantees`, such as
        ``NoFalseClaim(delta=0.05)`` or ``NoFalseClaim(by="model")``. None is
        ``NoFalseClaim()``.
    online : bool, default=False
        Whether the risk of a claim is computed from the claims up to it, so that `stream`
        can decide while an answer is written.
    random_state : int, RandomState or None, default=None
        Seeds the split and the jitter.
    n_jobs : int, optional
        As in `CoherentConformalFilter`.
    verbose : int, default=0
        As in `CoherentConformalFilter`.

    Attributes
    ----------
    nonconformity_scores_ : ndarray of shape (n_calibration,)
        Sorted; +inf for a problem without a false claim.
    whole_answer_scores_ : ndarray of shape (n_calibration,)
        Largest path risk of each problem with a false claim, sorted; +inf for the others.
    max_path_risks_ : ndarray of shape (n_calibration,) or None
        Largest path risk of each problem, sorted.
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
    classes_ : ndarray of shape (2,)
        After a fit to a table: the values of y that mean false and true, in this order.
    features_ : transformer or None
        What ``features=`` became when it was fitted.
    share_ : float or None
        Share of the answers that may pass, if `fit` chose it (``show="auto"``).
    unused_indices_ : ndarray of int
        Positions, among the problems as passed, of those that were free to calibrate and
        were not needed. After `calibrate_parts` a row (part, position in its call) for each.
    provenance_ : dict
        How the calibration problems were made, and what their labels mean.

    Notes
    -----
    A step before the filter that learns from labels has seen those of the calibration
    problems: coverage was 0.741 with LinearDiscriminantAnalysis and 0.859 with SelectKBest
    where 0.9 was promised. Pass it as ``features=``. To search, use
    `skdcf.evaluation.CalibratedSearch`. It refuses a search over ``alpha``, ``ties``, ``edges``
    or ``guarantee``, since of two guarantees the weaker one keeps more.

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
class _Preset(HardCF):
    """A filter whose scorer is not trained through calibration."""

    relaxation: None = field(default=None, init=False)
    training: None = field(default=None, init=False)


@settings
class IndependentFactuality(_Preset):
    """Conformal factuality without a graph: every claim stands for itself.

    Parameters
    ----------
    scorer : str, int, scorer, classifier, callable or None, default=None
        As in `HardCF`.
    features : transformer or Pipeline, optional
        As in `HardCF`.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim.
    calibration_size : float or int, optional
        As in `HardCF`.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `HardCF`.
    guarantee : Guarantee, optional
        As in `HardCF`.
    random_state : int, RandomState or None, default=None
        Seeds the split and the jitter.
    n_jobs : int, optional
        As in `CoherentConformalFilter`.
    verbose : int, default=0
        As in `CoherentConformalFilter`.

    Attributes
    ----------
    nonconformity_scores_, whole_answer_scores_, max_path_risks_, threshold_, calibration_
        As in `HardCF`.
    n_calibration_, scorer_, n_features_in_, feature_names_in_, features_, unused_indices_,
    share_, provenance_
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
class SingleFeatureCF(_Preset):
    """Coherent factuality on one feature, mixed with that of the claims below.

    Parameters
    ----------
    feature : str or int, default=None
        Name or column number. None is "frequency-score" where there is such a
        feature, else the first column.
    features : transformer or Pipeline, optional
        As in `HardCF`.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim.
    edges : "given", "none" or a rule of `skdcf.edges`, default="given"
        What a claim builds on, as in `HardCF`.
    calibration_size : float or int, optional
        As in `HardCF`.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `HardCF`.
    guarantee : Guarantee, optional
        As in `HardCF`.
    online : bool, default=False
        Whether decisions are made while an answer is written, as in `HardCF`.
    random_state : int, RandomState or None, default=None
        Seeds the split and the jitter.
    n_jobs : int, optional
        As in `CoherentConformalFilter`.
    verbose : int, default=0
        As in `CoherentConformalFilter`.
    beta_mix : float, default=0.0
        Weight of the median over descendants, in [0, 1]; see `~skdcf.scorers.FrequencyScorer`.
    over : {"descendants", "children"}, default="descendants"
        As in `~skdcf.scorers.FrequencyScorer`.

    Attributes
    ----------
    nonconformity_scores_, whole_answer_scores_, max_path_risks_, threshold_, calibration_
        As in `HardCF`.
    n_calibration_, scorer_, n_features_in_, feature_names_in_, features_, unused_indices_,
    share_, provenance_
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
            usual = FrequencyScorer().feature
            feature = usual if usual in (batch.feature_names or ()) else 0
        return FrequencyScorer(feature=feature, beta_mix=self.beta_mix, over=self.over)


@settings
class BoostedIndependentFactuality(CoherentConformalFilter):
    """Conformal factuality with a trained score and without a graph.

    `CoherentConformalFilter` with ``edges="none"`` in training and afterwards.

    Parameters
    ----------
    scorer : default="linear"
        As in `CoherentConformalFilter`.
    features : transformer or Pipeline, optional
        As in `HardCF`.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim.
    relaxation : PathRelaxation or GridRelaxation, optional
        As in `CoherentConformalFilter`.
    training : SoftTraining, optional
        As in `CoherentConformalFilter`.
    calibration_size : float or int, optional
        As in `CoherentConformalFilter`.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `CoherentConformalFilter`.
    guarantee : Guarantee, optional
        As in `HardCF`.
    online : bool, default=False
        Whether decisions are made while an answer is written, as in `HardCF`.
    random_state : int, RandomState or None, default=None
        As in `CoherentConformalFilter`.
    n_jobs : int, optional
        As in `CoherentConformalFilter`.
    verbose : int, default=0
        As in `CoherentConformalFilter`.

    Attributes
    ----------
    coef_, loss_curve_, n_iter_
        As in `CoherentConformalFilter`.
    nonconformity_scores_, whole_answer_scores_, max_path_risks_, threshold_, calibration_
        As in `CoherentConformalFilter`.
    n_calibration_, scorer_, n_features_in_, feature_names_in_, features_, unused_indices_,
    share_, provenance_
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

    scorer: Any = "linear"
    edges: Any = field(default="none", init=False)


@settings
class XGBoostCF(_Preset):
    """Coherent factuality on boosted trees, trained to classify claims.

    Needs ``xgboost``.

    Parameters
    ----------
    features : transformer or Pipeline, optional
        As in `HardCF`.
    alpha : float, default=0.1
        Share of problems, in (0, 1), that may keep a false claim.
    edges : "given", "none" or a rule of `skdcf.edges`, default="given"
        What a claim builds on, as in `HardCF`.
    calibration_size : float or int, optional
        As in `HardCF`.
    ties : {"exclude", "include", "jitter"}, default="exclude"
        As in `HardCF`.
    guarantee : Guarantee, optional
        As in `HardCF`.
    online : bool, default=False
        Whether decisions are made while an answer is written, as in `HardCF`.
    random_state : int, RandomState or None, default=None
        Seeds the split and the jitter.
    n_jobs : int, optional
        As in `CoherentConformalFilter`.
    verbose : int, default=0
        As in `CoherentConformalFilter`.
    max_depth : int, default=3
        Depth of each tree.
    n_estimators : int, default=100
        Number of trees.
    learning_rate : float, default=0.1
        Shrinkage of each tree.
    target : {"coherent", "own"}, default="coherent"
        What the trees learn; see `~skdcf.scorers.ClassifierScorer`.

    Attributes
    ----------
    nonconformity_scores_, whole_answer_scores_, max_path_risks_, threshold_, calibration_
        As in `HardCF`.
    n_calibration_, scorer_, n_features_in_, feature_names_in_, features_, unused_indices_,
    share_, provenance_
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
        names = "max_depth", "n_estimators", "learning_rate"
        parameters = {name: getattr(self, name) for name in names}
        trees = xgboost.XGBClassifier(**parameters, n_jobs=1)
        return ClassifierScorer(trees, target=self.target)
