"""Applications built on the estimators; nothing else in the package imports them."""
