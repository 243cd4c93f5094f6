"""Applications built on the estimators. No other part of the package imports them."""
