"""Applications built on the estimators. The rest of the package does not import this subpackage."""
