"""Settings are values: declared, searchable, and refused where nothing would use them."""

from copy import copy

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import skdcf
from skdcf import (
    CoherentConformalFilter,
    HardCF,
)
from skdcf.datasets import make_reasoning_graphs
from skdcf.relaxation import PathRelaxation
from skdcf.scorers import (
    ClassifierScorer,
    FrequencyScorer,
    MLPModel,
    Scorer,
)
from skdcf.training import LBFGS, Adam, SoftTraining

GRAPHS, Y = make_reasoning_graphs(80, random_state=0, return_X_y=True)
FILTERS = [
    getattr(skdcf, name)
    for name in skdcf.__all__
    if hasattr(getattr(skdcf, name), "predict_alpha")
]


def linear(**changes):
    return CoherentConformalFilter(
        "linear",
        **{"random_state": 0, "alpha": 0.2, "calibration_size": 0.3} | changes,
    )


def test_the_settings_of_the_paper():
    training = SoftTraining.from_paper()
    training.validate()
    adam = {"learning_rate": 0.015, "max_iter": 100, "patience": 10}
    assert training.optimizer.get_params().items() >= adam.items()
    assert (
        training.get_params(deep=False).items()
        >= {
            "loss": "retention",
            "init": "random",
            "shrinkage": 0.0,
            "unit_variance": False,
        }.items()
    )


def test_none_is_the_default_spelt_out():
    short = linear().fit(GRAPHS, Y)
    relaxation, training = PathRelaxation(), SoftTraining(LBFGS())
    spelt = linear(relaxation=relaxation, training=training).fit(GRAPHS, Y)
    assert spelt.threshold_ == short.threshold_
    np.testing.assert_array_equal(spelt.coef_, short.coef_)
    assert (short.relaxation, short.training) == (None, None)


# --- what is set and not used is refused


class Counting(Scorer):
    """Refusals come before any work: this one must not be fitted."""

    requires_fit = True

    def fit(self, batch, labels, task=None):
        raise AssertionError("work was done before the settings were checked")

    def confidence(self, batch):
        raise AssertionError("work was done before the settings were checked")


UNUSED = {"relaxation": PathRelaxation(), "training": SoftTraining()}
WITHOUT_TRAINING = {"column": 0, "classifier": LogisticRegression(), "own": Counting()}


@pytest.mark.parametrize("setting", UNUSED)
@pytest.mark.parametrize("name", WITHOUT_TRAINING)
def test_settings_of_training_are_refused_where_nothing_is_trained(setting, name):
    settings = {setting: UNUSED[setting]}
    filter = CoherentConformalFilter(WITHOUT_TRAINING[name], **settings)
    with pytest.raises(ValueError, match=f"^{setting} .*effect"):
        filter.fit(GRAPHS, Y)
    assert not hasattr(filter, "scorer_")


# --- declared constraints


WRONG = [
    ("ties", None),
    ("calibration_size", 1.0),
    ("calibration_size", True),
    ("random_state", "0"),
    ("relaxation", PathRelaxation),
    ("training", Adam()),
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=repr)
def test_parameters_of_the_conformal_filter(name, value):
    filter = CoherentConformalFilter(Counting(), **{name: value})
    match = f"The '{name}' parameter of CoherentConformalFilter must be "
    with pytest.raises(ValueError, match=match) as info:
        filter.fit(GRAPHS, Y)
    assert f"Got {value!r} instead" in str(info.value)


@pytest.mark.parametrize("alpha", [0, True, "0.1", None, np.nan, [0.1]])
@pytest.mark.parametrize("cls", FILTERS)
def test_alpha_is_a_share(cls, alpha):
    with pytest.raises(ValueError, match=r"alpha .*between 0 and 1"):
        cls(alpha=alpha).fit(GRAPHS, Y)


@pytest.mark.parametrize(
    ("value", "name", "bound"),
    [
        (LBFGS(max_iter=2.5), "max_iter", "an int in the range"),
        (Adam(patience=True), "patience", "an int in the range"),
        (Adam(learning_rate=np.inf), "learning_rate", "a float in the range"),
        (Adam(validation_size=1.0), "validation_size", "None, a float in the range"),
    ],
    ids=repr,
)
def test_parameters_of_optimizers(value, name, bound):
    match = f"The '{name}' parameter of {type(value).__name__} must be .*{bound}"
    for check in (
        value.validate,
        lambda: linear(training=SoftTraining(value)).fit(GRAPHS, Y),
    ):
        with pytest.raises(ValueError, match=match):
            check()


@pytest.mark.parametrize(
    ("change", "bound"),
    [
        ({"shrinkage": -1}, r"a float in the range \[0.0, inf\)"),
        ({"unit_variance": 2}, "an instance of 'bool'"),
        ({"optimizer": Adam}, "an object implementing"),
    ],
    ids=repr,
)
def test_parameters_of_training(change, bound):
    [name] = change
    match = f"The '{name}' parameter of SoftTraining must be .*({bound})"
    with pytest.raises(ValueError, match=match):
        linear(training=SoftTraining(**change)).fit(GRAPHS, Y)


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        (FrequencyScorer(beta_mix=True), "'beta_mix' parameter of FrequencyScorer"),
        (ClassifierScorer(target="mine"), "'target' parameter of ClassifierScorer"),
        (MLPModel((2, 0)), "hidden_layer_sizes"),
    ],
    ids=repr,
)
def test_parameters_of_scorers(scorer, message):
    with pytest.raises(ValueError, match=message):
        HardCF(scorer).fit(GRAPHS, Y)


@pytest.mark.parametrize("bad", [np.float32("nan"), np.float32(1), np.bool_(True)])
def test_numbers_of_numpy_are_checked(bad):
    with pytest.raises(ValueError, match="'calibration_size' parameter"):
        linear(calibration_size=bad).fit(GRAPHS, Y)


def test_parameters_are_checked_again_at_calibration():
    filter = linear().fit(GRAPHS, Y)
    for change in ({"ties": "keep"}, {"edges": "no"}):
        with pytest.raises(ValueError, match=r"parameter.*CoherentConformalFilter"):
            copy(filter).set_params(**change).calibrate(GRAPHS, Y)
    with pytest.raises(ValueError, match=r"alpha .*got 2"):
        copy(filter).set_params(alpha=2).calibrate(GRAPHS, Y)
