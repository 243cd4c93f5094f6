"""A differentiable scorer after training, without what trained it."""

import numpy as np


class TrainedScorer:
    """A differentiable scorer with its trained parameters; plain numpy.

    Parameters
    ----------
    scorer : differentiable scorer
    params : object
        Its parameters, for standardised features.
    standardizer : Standardizer
        Of the training problems.
    scale : float
        Deviation of the scores over the training claims.
    loss_curve : tuple of float
        Training objective per step.
    trained_on : bytes or None
        Digest of the training problems.
    """

    def __init__(
        self, scorer, params, standardizer, scale, loss_curve, trained_on=None
    ):
        self.scorer = scorer
        self.params = params
        self.standardizer = standardizer
        self.scale = scale
        self.loss_curve = loss_curve
        self.trained_on = trained_on

    def confidence(self, batch):
        """Confidence of each claim.

        Parameters
        ----------
        batch : GraphBatch

        Returns
        -------
        ndarray of shape (n_claims,)
        """
        X = self.standardizer(batch.features)
        return np.asarray(self.scorer(self.params, X)) / self.scale
