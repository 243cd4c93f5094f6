"""Settings printed in arXiv:2604.20098, appendix on hyperparameters."""

# alpha: gamma, lambda, tau_s, T_p, tau_z
_MATH = {
    0.03: (4.0, 1.35, 1.0, 1.0, 0.5),
    0.04: (5.0, 1.3, 2.0, 0.1, 0.1),
    0.05: (6.0, 1.6, 2.0, 0.1, 0.1),
    0.06: (6.0, 1.6, 0.4, 0.1, 0.1),
    0.07: (1.5, 1.7, 0.4, 0.1, 0.1),
    0.08: (6.0, 1.75, 1.0, 0.1, 0.1),
    0.09: (2.0, 1.7, 0.4, 0.1, 0.01),
    0.10: (5.0, 1.9, 2.0, 0.1, 0.5),
}
# alpha: gamma, lambda, T_p; tau_s and tau_z are shared
_FELM = {
    0.01: (1.5, 1.2, 1.0),
    0.02: (1.0, 1.5, 1.0),
    0.03: (1.25, 1.3, 1.0),
    0.04: (1.5, 1.45, 0.5),
    0.05: (1.25, 1.45, 0.5),
    0.06: (1.0, 1.0, 1.0),
    0.07: (1.25, 0.9, 1.0),
    0.08: (1.25, 1.5, 1.0),
    0.09: (1.0, 1.65, 1.0),
    0.10: (1.25, 1.9, 0.5),
}
_VALIDATION = (1.0, 1.0, 0.001, 0.01, 0.001)
_NAMES = (
    "ancestor_weight",
    "violation_weight",
    "violation_temperature",
    "keep_temperature",
    "gate_temperature",
)
_SHARED = {"sharpness": 1.0, "margin": 20.0}


def published(dataset, alpha):
    """Keyword arguments of `GridRelaxation`; ValueError if there is no such row."""
    if dataset == "validation":
        if alpha is not None:
            raise ValueError(
                f"the validation settings have no alpha, but got {alpha!r}"
            )
        return dict(zip(_NAMES, _VALIDATION, strict=True)) | _SHARED
    felm = {k: (g, w, 0.8, T, 0.01) for k, (g, w, T) in _FELM.items()}
    tables = {"math": _MATH, "felm": felm}
    if dataset not in tables:
        raise ValueError(f'dataset is {dataset!r}: "math", "felm" or "validation"')
    if alpha not in tables[dataset]:
        raise ValueError(
            f"no row for alpha = {alpha!r}; there are {list(tables[dataset])}"
        )
    return dict(zip(_NAMES, tables[dataset][alpha], strict=True)) | _SHARED
