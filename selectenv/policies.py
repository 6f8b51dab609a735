"""Players: policies that act on pictures, those of the data and others."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from selectenv.datasets.images import Pictures
from selectenv.kernels.network.cnn import Layers, outputs
from selectenv.typing import BoolArray, FloatArray, IntArray


class Player(Protocol):
    """Says how likely each action is."""

    def probabilities(self, pictures: BoolArray) -> FloatArray:
        """Return action probabilities [batch, actions] for pictures [batch, rows, columns, channels]."""


@dataclass(frozen=True, eq=False)
class GreedyPlayer:
    """Takes the action of the highest value; the value is the smaller one of two networks."""

    networks: tuple[Layers, ...]

    def values(self, pictures: BoolArray) -> FloatArray:
        """Return action values [batch, actions]."""
        found: FloatArray = np.min([outputs(layers, pictures) for layers in self.networks], axis=0).astype(np.float64)
        return found

    def probabilities(self, pictures: BoolArray) -> FloatArray:
        """Return action probabilities [batch, actions] for pictures [batch, rows, columns, channels]."""
        return greedy(self.values(pictures))


@dataclass(frozen=True, eq=False)
class CloningPlayer:
    """Acts as the data do: draws actions as often as they did, or takes the likeliest."""

    logits: Layers
    likeliest: bool = False

    def probabilities(self, pictures: BoolArray) -> FloatArray:
        """Return action probabilities [batch, actions] for pictures [batch, rows, columns, channels]."""
        logits = outputs(self.logits, pictures).astype(np.float64)
        if self.likeliest:
            return greedy(logits)
        share = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(share / share.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class LabelledPlayer:
    """Acts by values in labelled states, and as the data do in all other pictures."""

    valued: "GreedyPlayer | RandomPlayer"
    otherwise: CloningPlayer
    labels: BoolArray
    """[n]"""
    ids: IntArray
    """[n]"""
    known: Pictures

    def probabilities(self, pictures: BoolArray) -> FloatArray:
        """Return action probabilities [batch, actions] for pictures [batch, rows, columns, channels]."""
        found = self.otherwise.probabilities(pictures)
        number = self.known.find(self.ids, pictures)
        labelled = (number >= 0) & self.labels[number]
        if labelled.any():
            found[labelled] = self.valued.probabilities(pictures[labelled])
        return found


@dataclass(frozen=True)
class RandomPlayer:
    """Takes any action: what is left when there is nothing to learn from."""

    n_actions: int

    def probabilities(self, pictures: BoolArray) -> FloatArray:
        """Return action probabilities [batch, actions] for pictures [batch, rows, columns, channels]."""
        return np.full((len(pictures), self.n_actions), 1 / self.n_actions)


def greedy(values: FloatArray) -> FloatArray:
    """Return the probabilities [batch, actions] of the best actions; equally good ones share alike."""
    best = values == values.max(axis=1, keepdims=True)
    return np.asarray(best / best.sum(axis=1, keepdims=True))
