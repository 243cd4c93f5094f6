"""The settings under which the paper's theorems hold."""

from skdcf.relaxation import GridRelaxation


def relaxation_at(T, s=0.5, a=1.0, b=3.0):
    """A relaxation that is exact as T falls to 0, for 0 < s < 1, a > 0 and b > 2."""
    return GridRelaxation(
        keep_temperature=T,
        keep_shift=T**0.5,
        violation_temperature=T**s,
        sharpness=T**-a,
        gate_temperature=T ** (a * b),
        gate_shift=T ** (a * b / 2),
        quantile_strength=1 / T,
    )
