"""A hazard from the words of claims and questions."""

from __future__ import annotations

import re
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._checks import warn
from .._parameters import Number, Settings, positive
from ..exceptions import GuaranteeWarning, SettingWarning
from ..ops.texts import NUMBER, check_claim_texts, clean

if TYPE_CHECKING:
    from ..graphs import GraphBatch
    from ._hazards import Seen

_NUMERAL = re.compile(NUMBER)
_TOKEN = r"[^\W\d_]+|\\[a-z]+|[^\sa-z]"  # words, commands of LaTeX, single signs


class TextHazard(Settings):
    """A further hazard, which reads the claim and its question.

    Logistic regression on words and pairs of neighbours, weighed by how rare they are.
    Texts are cleaned as for `skdcf.features.TextFeatures`, and each number reads "0".

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty.
    question_weight : float, default=0.5
        Weight of the question's words beside those of the claim; 0 leaves them out.
    min_claims : int, default=3
        Of the training claims (for words of questions: of the problems) must have a word
        or pair, or it is not read.
    min_problems : int, default=300
        With fewer training problems this hazard is left out, with a warning: on few it
        keeps less than is kept without it.

    Warns
    -----
    GuaranteeWarning
        Whenever it is trained, of what it learns.
    SettingWarning
        Where it is left out.

    Warnings
    --------
    Half of what words tell is who wrote an answer, not whether it is true. Where errors
    were planted by a model, it learns the style of that model, and what it gains there
    says nothing about other errors. Calibrate on the same mix of writers that the filter
    will be used on, and compare with and without it on errors that nobody planted.

    Examples
    --------
    >>> from skdcf import HardCF
    >>> from skdcf.scorers import MixtureScorer, NeymanPearsonScorer, TextHazard
    >>> auto = MixtureScorer(text=TextHazard())
    >>> hazards = HardCF(NeymanPearsonScorer(text=TextHazard(C=0.3)))
    >>> hazards.get_params()["scorer__text__C"]
    0.3
    """

    _parameter_constraints = {
        "C": [positive(Real)],
        "question_weight": [Number(Real, 0, None, closed="left")],
        "min_claims": [positive(Integral)],
        "min_problems": [positive(Integral)],
    }

    n_hazards = 1

    def __init__(
        self,
        C: float = 1.0,
        *,
        question_weight: float = 0.5,
        min_claims: int = 3,
        min_problems: int = 300,
    ) -> None:
        self.C = C
        self.question_weight = question_weight
        self.min_claims = min_claims
        self.min_problems = min_problems

    def learn(self, seen: Seen, false: NDArray[np.bool_]) -> None:
        """Fit the regression.

        Parameters
        ----------
        seen : Seen
            Claims all of whose ancestors are true, with their words.
        false : ndarray of bool, shape (n_claims,)
        """
        from sklearn.linear_model import LogisticRegression

        self.estimator_ = LogisticRegression(C=self.C, solver="liblinear")
        self.estimator_.fit(seen.words, false)

    def log_odds(self, seen: Seen, chance: float) -> NDArray[np.float64]:
        """Log odds of an error, from the fitted regression.

        Parameters
        ----------
        seen : Seen
        chance : float
            Overall chance of an error; not used.

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        return self.estimator_.decision_function(seen.words)

    def read(self, batch: GraphBatch) -> TextHazard:
        """Learn the words of training problems; no label enters.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a claim has no text.
        """
        claims, questions = _texts(batch)
        self.claim_words_ = _fit_words(claims, self.min_claims)
        self.question_words_ = None
        if self.question_weight:
            self.question_words_ = _fit_words(questions, self.min_claims)
        return self

    def words(self, batch: GraphBatch) -> Any:
        """Weights of the words that stand in each claim and its question.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        sparse array of shape (n_claims, n_words)

        Raises
        ------
        ValueError
            If a claim has no text.
        """
        from scipy.sparse import csr_array, hstack

        claims, questions = _texts(batch)
        blocks = []
        if self.claim_words_ is not None and claims:
            blocks.append(self.claim_words_.transform(claims))
        if self.question_words_ is not None and questions:
            weights = self.question_weight * self.question_words_.transform(questions)
            blocks.append(weights[batch.problem_of])
        if not blocks:  # one column that says nothing, as no regression takes none
            return csr_array((batch.n_claims, 1))
        return hstack(blocks, format="csr")


def fresh_reader(text, batch):
    """A `TextHazard` that has read the words, or None where problems are too few."""
    check_claim_texts(batch)
    if len(batch) < text.min_problems:
        warn(
            f"text: the hazard from words is left out, as {len(batch)} training problems "
            f"are fewer than min_problems={text.min_problems}",
            SettingWarning,
        )
        return None
    warn(
        "text: half of what the hazard from words learns is who wrote an answer. Calibrate "
        "on the writers that the filter is used on, and do not take its gain on planted "
        "errors for a gain on others",
        GuaranteeWarning,
    )
    return clone(text).read(batch)


def _texts(batch):
    """Claims and questions as they are read, lists of str."""
    check_claim_texts(batch)
    claims = () if batch.claims is None else batch.claims
    questions = [None] * len(batch) if batch.problems is None else batch.problems
    return [_plain(text) for text in claims], [_plain(text or "") for text in questions]


def _plain(text):
    return _NUMERAL.sub("0", clean(text))


def _fit_words(texts, least):
    """A fitted vectorizer, or None where no word stands in ``least`` of the texts."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        lowercase=False,
        token_pattern=_TOKEN,
        ngram_range=(1, 2),
        min_df=least,
        sublinear_tf=True,
    )
    try:
        return vectorizer.fit(texts)
    except ValueError:  # of an empty vocabulary, or of fewer texts than ``least``
        return None
