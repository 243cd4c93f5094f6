"""Full-batch L-BFGS and Adam on a flat parameter vector.

Both take ``fun(x) -> (value, gradient)`` and call ``seen(step, x, value)`` after each
step; `seen` may end the run by returning True. Both give back the last parameters at
which all was finite, and whether it was so to the end.
"""

import numpy as np
from scipy.optimize import minimize


class _NotFiniteError(Exception):
    pass


def lbfgs(fun, x, max_iter, seen, tolerance=1e-6):
    """Minimise by L-BFGS; ``tolerance`` bounds the largest entry of the gradient.

    Its line search asks for curvature (Wolfe), which a loss that is smooth in pieces does not
    have everywhere. One that asks for decrease alone (Armijo) was tried instead: it saved
    one evaluation in ten at best, and GridRelaxation kept fewer claims on small problems.

    Parameters
    ----------
    fun : callable
    x : ndarray of shape (n,)
    max_iter : int
    seen : callable
    tolerance : float

    Returns
    -------
    x : ndarray of shape (n,)
    finite : bool
    """
    last = x

    def checked(point):
        value, gradient = fun(point)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise _NotFiniteError
        return value, gradient

    def callback(intermediate_result):
        nonlocal last, step
        last = intermediate_result.x.copy()
        if seen(step, last, float(intermediate_result.fun)):
            raise StopIteration
        step += 1

    step = 0
    options = {"maxiter": max_iter, "gtol": tolerance, "ftol": 1e-10}
    try:
        minimize(
            checked, x, jac=True, method="L-BFGS-B", callback=callback, options=options
        )
    except _NotFiniteError:
        return last, False
    return last, True


def adam(fun, x, max_iter, seen, learning_rate=0.015):
    """Minimise by Adam (Kingma & Ba 2015, with the constants given there).

    Parameters
    ----------
    fun : callable
    x : ndarray of shape (n,)
    max_iter : int
    seen : callable
    learning_rate : float

    Returns
    -------
    x : ndarray of shape (n,)
    finite : bool
    """
    mean, square, last = np.zeros_like(x), np.zeros_like(x), x
    for step in range(max_iter):
        value, gradient = fun(x)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return last, False
        last = x
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        unbiased = mean / (1 - 0.9 ** (step + 1))
        scale = np.sqrt(square / (1 - 0.999 ** (step + 1))) + 1e-8
        x = x - learning_rate * unbiased / scale
        if seen(step, x, float(value)):
            break
    return x, True
