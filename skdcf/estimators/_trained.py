"""What filters share whose scorer is trained through soft calibration."""

import warnings
from hashlib import blake2b

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..scorers import LinearScorer
from ..scorers._trained import TrainedScorer
from ._base import BaseFilter
from ._validation import holdout, take


class TrainedFilter(BaseFilter):
    """What `CoherentConformalFilter` and its preset without a graph share."""

    trains_for_alpha = True
    _scorer_names = '"linear"'

    def _trains(self, scorer):
        return True

    def _make_scorer(self, batch):
        needs_features(batch)
        return as_trainable(self.scorer, self._scorer_names)

    def _fit_scorer(self, scorer, batch, labels, groups, rng):
        from ..relaxation import PathRelaxation
        from ..training import train

        relaxation = PathRelaxation() if self.relaxation is None else self.relaxation
        validation = None
        if self.optimizer == "adam" and self.validation_size is not None:
            rest, rows = holdout(len(batch), self.validation_size, groups, rng)
            validation = take(batch, labels, rows)
            batch, labels = take(batch, labels, rest)
        digest = _digest(batch)
        result = train(
            scorer,
            relaxation,
            batch,
            labels,
            alpha=self.alpha,
            optimizer=self.optimizer,
            loss=self.loss,
            start=self._start(digest),
            shrinkage=self.shrinkage,
            unit_variance=self.unit_variance,
            coherent=self.coherent,
            max_iter=self.max_iter,
            learning_rate=self.learning_rate,
            patience=self.patience,
            validation=validation,
            rng=rng,
            verbose=bool(self.verbose),
        )
        if result.message:
            warnings.warn(result.message, ConvergenceWarning, stacklevel=3)
        return TrainedScorer(
            scorer,
            result.params,
            result.standardizer,
            result.scale,
            tuple(result.loss_curve),
            digest,
        )

    @property
    def coef_(self):
        """Weights of a linear scorer, per unit of the features as passed."""
        if type(getattr(self.scorer_, "scorer", None)) is not LinearScorer:
            raise AttributeError("coef_: the scorer is not linear")
        weights = self.scorer_.standardizer.raw_weights(self.scorer_.params)
        return weights / self.scorer_.scale

    @property
    def loss_curve_(self):
        """Training objective per step."""
        return list(_linear_part(self.scorer_).loss_curve)

    @property
    def n_iter_(self):
        """Number of training steps."""
        return len(_linear_part(self.scorer_).loss_curve)

    def _start(self, digest):
        """Where training starts; with ``warm_start`` where it ended, if it may."""
        last = getattr(self, "scorer_", None)
        if not self.warm_start or last is None:
            return self.start
        if getattr(last, "trained_on", None) == digest:
            return last.params
        warnings.warn(
            "warm_start: the training problems are not those of the last fit. Going on "
            "from there could calibrate on problems that were trained on, and void the "
            "guarantee, so training starts afresh. Pass the same problems and an "
            "integer random_state to go on.",
            UserWarning,
            stacklevel=4,
        )
        return self.start

    def _check_parameters(self):
        from ..training import check_options

        super()._check_parameters()
        if self.ties == "include":
            raise ValueError(
                'ties is "include", which reproduces published code with HardCF and has '
                'no guarantee: "exclude" or "jitter" expected'
            )
        check_options(
            self.optimizer,
            self.loss,
            self.start,
            self.shrinkage,
            self.max_iter,
            self.learning_rate,
            self.patience,
        )
        if self.relaxation is not None:
            if not hasattr(self.relaxation, "validate"):
                raise ValueError(
                    f"relaxation is {self.relaxation!r}: a PathRelaxation, a "
                    "GridRelaxation or None expected"
                )
            self.relaxation.validate()


def _linear_part(scorer):
    """The linear member of a mixture; any other scorer as it is."""
    return getattr(scorer, "members", {}).get("linear", scorer)


def needs_features(batch):
    """ValueError where the problems have no features yet."""
    if batch.features is None:
        raise ValueError(
            "training needs features, but the problems have none yet: add some with "
            "skdcf.features"
        )


def as_trainable(scorer, names):
    """A differentiable scorer from what a user writes for ``scorer=``."""
    if isinstance(scorer, str) and scorer == "linear":
        return LinearScorer()
    if callable(getattr(scorer, "init", None)) and callable(scorer):
        return scorer
    raise ValueError(
        f"scorer is {scorer!r}: {names} or a differentiable scorer, an object with "
        "init(n_features, rng) and scorer(params, X), expected. For feature names, "
        "classifiers and functions there is HardCF"
    )


def _digest(batch):
    """Which problems these are, order included."""
    digest = blake2b(digest_size=16)
    for array in (batch.features, batch.offsets, batch.edges):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()
