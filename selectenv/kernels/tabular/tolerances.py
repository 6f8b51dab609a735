"""Tolerances of the solvers, which grow with the rewards that a label set knows, and with no others."""

from selectenv.kernels.compiled import inlined
from selectenv.kernels.tabular.model import Model
from selectenv.typing import FloatArray

TIE = 1e-8
"""Actions within this of the best are equally good."""
SWITCH_GAIN = 1e-11
"""Policy iteration changes an action only for a larger gain, so that rounding does not make it cycle."""


@inlined
def fill_scales(model: Model, labels: FloatArray, impute: float, scales: FloatArray) -> None:
    """Write the largest magnitude of a known or imputed reward, but at least 1, of each label set into ``scales``."""
    for w in range(len(scales)):
        scales[w] = 1.0 if abs(impute) < 1.0 else abs(impute)
    for s in range(len(labels)):
        largest = 0.0
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            size = abs(model.reward[choice])
            largest = size if size > largest else largest
        if largest > 1.0:
            label = labels[s]
            for w in range(len(scales)):
                scales[w] = largest if label[w] > 0.0 and largest > scales[w] else scales[w]


@inlined
def fill_ties(scales: FloatArray, gamma: float, ties: FloatArray) -> None:
    """Write how close to the best an action must be: `TIE`, or more if large rewards make rounding errors larger."""
    for w in range(len(scales)):
        rounding = 1e-13 * scales[w] / (1.0 - gamma + 1e-6)
        ties[w] = rounding if rounding > TIE else TIE
