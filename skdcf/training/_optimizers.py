"""Full-batch L-BFGS and Adam on a flat parameter vector.

Both take ``fun(x) -> (value, gradient)`` and call ``seen(step, x, value)`` after each
step; `seen` may end the run by returning True. Both give back the last parameters at
which all was finite, and whether it was so to the end.
"""

from collections import deque

import numpy as np

_MEMORY = 10  # pairs of steps and changes of the gradient
_DECREASE = 1e-4  # Armijo: of what the gradient promises, at least so much
_NO_GAIN = 1e-10  # relative change of the value at which a run ends
_TRIALS = 20
_LONGEST = 10.0  # a step, in lengths of the parameters, and 1 without pairs to tell


class _NotFiniteError(Exception):
    pass


def lbfgs(fun, x, max_iter, seen, tolerance=1e-6):
    """Minimise by L-BFGS; ``tolerance`` bounds the largest entry of the gradient.

    A step is taken as soon as the value falls by enough (Armijo). Nothing is asked of the
    gradient there, as a line search under Wolfe's conditions does: a function that is
    only smooth in pieces may have no such point, and looking for it costs evaluations.

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

    References
    ----------
    J. Nocedal, S. Wright. Numerical Optimization, 2006, algorithms 3.1, 7.4 and 7.5.
    """
    pairs = deque(maxlen=_MEMORY)
    try:
        value, gradient = _checked(fun, x)
        for step in range(max_iter):
            if np.abs(gradient).max(initial=0.0) <= tolerance:
                break
            found = _search(fun, x, value, gradient, pairs)
            if found is None:
                break
            last, (x, value, after) = (x, value), found
            pairs.append((x - last[0], after - gradient))
            gradient = after
            if pairs[-1][0] @ pairs[-1][1] <= 0:
                pairs.pop()  # no curvature to learn from
            gain = last[1] - value
            if seen(step, x, value) or gain <= _NO_GAIN * max(abs(value), 1.0):
                break
    except _NotFiniteError:
        return x, False
    return x, True


def _search(fun, x, value, gradient, pairs):
    """The next (x, value, gradient), or None where no step along it gains anything."""
    direction = _direction(gradient, pairs)
    slope = direction @ gradient
    longest = _LONGEST * max(1.0, np.linalg.norm(x)) if pairs else 1.0
    length = min(1.0, longest / np.linalg.norm(direction))
    for _ in range(_TRIALS):
        at = x + length * direction
        new, after = _checked(fun, at)
        if new <= value + _DECREASE * length * slope:
            return at, new, after
        least = -slope * length / (2 * (new - value - slope * length))  # of a parabola
        length *= min(max(least, 0.1), 0.5)
    if not pairs:
        return None
    pairs.clear()
    return _search(fun, x, value, gradient, pairs)


def _direction(gradient, pairs):
    """Minus the gradient times the inverse Hessian that the pairs speak of.

    That is the two loops over pairs in matrix form (Byrd, Nocedal, Schnabel 1994,
    equation 3.1), which takes a dozen calls whatever the number of pairs.
    """
    if not pairs:
        return -gradient
    S, Y = map(np.array, zip(*pairs, strict=True))
    R = np.triu(S @ Y.T)
    D = np.diag(R)
    scale = D[-1] / (Y[-1] @ Y[-1])
    u = np.linalg.solve(R, S @ gradient)
    rest = gradient - u @ Y
    v = np.linalg.solve(R.T, D * u - scale * (Y @ rest))
    return -scale * rest - v @ S


def _checked(fun, x):
    value, gradient = fun(x)
    value = float(value)
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        raise _NotFiniteError
    return value, gradient


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
