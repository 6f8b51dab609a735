"""The networks that suit the observations of a dataset: convolutions for images, two hidden layers for vectors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.images import Images
from selectenv.datasets.vector_observations import Vectors, check_vectors
from selectenv.errors import DatasetError
from selectenv.kernels.network import cnn
from selectenv.kernels.network.backprop import Adam, Pass, new_pass
from selectenv.kernels.network.cnn import FILTERS, HIDDEN, SIDE, Layers
from selectenv.kernels.network.mlp import (
    VectorBatch,
    VectorLayers,
    VectorPass,
    VectorTable,
    new_vector_batch,
    new_vector_pass,
    vector_outputs,
    vector_shapes,
    vector_table,
)
from selectenv.kernels.network.patched_images import PatchedImages
from selectenv.kernels.network.patches import Batch, Patches, find_patches, new_batch
from selectenv.kernels.network.simd import aligned_zeros
from selectenv.kernels.network.updates import Network
from selectenv.policies import ActingNetwork, NetworkInput, Observations
from selectenv.typing import Float32Array, FloatArray

CHANNELS = 14
"""Maximum number of channels of an image: a patch must fit into 128 bits."""


class Architecture(Protocol):
    """The networks for one type of observations, and what their compiled passes need."""

    @property
    def layers(self) -> type[Any]:
        """The named tuple of the parts of a network."""

    @property
    def inputs(self) -> tuple[int, ...]:
        """Number of inputs of a unit of each part; fresh weights are drawn within 1 / sqrt(inputs) of zero."""

    def shapes(self, n_outputs: int) -> tuple[tuple[int, ...], ...]:
        """Return the shape of each part."""

    @property
    def observations(self) -> Any:
        """The observations of all states, from which batches are filled."""

    def new_batch(self, size: int) -> Any:
        """Return an empty batch of ``size`` observations."""

    def new_pass(self, size: int) -> Any:
        """Return room for the passes of such a batch."""

    def acting(self, layers: Any) -> ActingNetwork:
        """Return a network for policies, which takes observations as they come from a world."""

    @property
    def all_states(self) -> NetworkInput:
        """The observations of all states, as networks for policies take them."""


@dataclass(frozen=True, eq=False)
class ImageArchitecture:
    """The small convolutional network of the MinAtar worlds."""

    channels: int
    patches: Patches | None = None
    """The patches of the images of all states."""
    layers = Layers

    @property
    def inputs(self) -> tuple[int, ...]:
        """Number of inputs of a unit of each part."""
        seen, filtered = 9 * self.channels, (SIDE - 2) ** 2 * FILTERS
        return seen, seen, filtered, filtered, HIDDEN, HIDDEN

    def shapes(self, n_outputs: int) -> tuple[tuple[int, ...], ...]:
        """Return the shape of each part."""
        return cnn.shapes(self.channels, n_outputs)

    @property
    def observations(self) -> Patches:
        """The patches of the images of all states."""
        if self.patches is None:
            raise DatasetError("this architecture was made without images")
        return self.patches

    def new_batch(self, size: int) -> Batch:
        """Return an empty batch of ``size`` images."""
        return new_batch(size, self.observations)

    def new_pass(self, size: int) -> Pass:
        """Return room for the passes of such a batch."""
        return new_pass(size)

    def acting(self, layers: Layers) -> Layers:
        """Return the layers themselves, which take images."""
        return layers

    @property
    def all_states(self) -> PatchedImages:
        """The images of all states, by their patches."""
        return PatchedImages(self.observations, np.arange(len(self.observations.number)))


@dataclass(frozen=True, eq=False)
class VectorNetwork:
    """A network for policies on vectors, which standardises their columns as those of the data were."""

    layers: VectorLayers
    columns: tuple[str, ...]
    """[d] names of the columns."""
    mean: FloatArray
    """[d]"""
    scale: FloatArray
    """[d]"""

    def outputs(self, observations: Observations) -> Float32Array:
        """Return the outputs [batch, outputs] for vectors [batch, d].

        Raises:
            ObservationError: they are not vectors of d finite numbers.
        """
        values = check_vectors(observations, self.columns)
        return vector_outputs(self.layers, vector_table(values, self.mean, self.scale))


@dataclass(frozen=True, eq=False)
class VectorArchitecture:
    """A network with two hidden layers of 128 units on vectors with standardised columns."""

    vectors: Vectors
    layers = VectorLayers

    @property
    def inputs(self) -> tuple[int, ...]:
        """Number of inputs of a unit of each part."""
        (columns,) = self.vectors.shape
        return columns, columns, HIDDEN, HIDDEN, HIDDEN, HIDDEN

    def shapes(self, n_outputs: int) -> tuple[tuple[int, ...], ...]:
        """Return the shape of each part."""
        return vector_shapes(self.vectors.shape[0], n_outputs)

    @property
    def observations(self) -> VectorTable:
        """The vectors of all states."""
        return vector_table(self.vectors.values, self.vectors.mean, self.vectors.scale)

    def new_batch(self, size: int) -> VectorBatch:
        """Return an empty batch of ``size`` vectors."""
        return new_vector_batch(size, self.vectors.shape[0])

    def new_pass(self, size: int) -> VectorPass:
        """Return room for the passes of such a batch."""
        return new_vector_pass(size)

    def acting(self, layers: VectorLayers) -> VectorNetwork:
        """Return a network for policies, which takes vectors as they come from a world."""
        return VectorNetwork(layers, self.vectors.columns, self.vectors.mean, self.vectors.scale)

    @property
    def all_states(self) -> Float32Array:
        """The vectors of all states."""
        return self.vectors.values


def _for_images(dataset: OfflineDataset, images: Images) -> ImageArchitecture:
    patches = find_patches(images.words, images.shape, dataset.visits)
    return ImageArchitecture(images.shape[2], patches)


def _for_vectors(dataset: OfflineDataset, vectors: Vectors) -> VectorArchitecture:
    return VectorArchitecture(vectors)


ARCHITECTURES: dict[type, Callable[[OfflineDataset, Any], Architecture]] = {Images: _for_images, Vectors: _for_vectors}
"""The architecture of a dataset's networks, by the type of its observations."""


def check_observations(dataset: OfflineDataset) -> Images | Vectors:
    """Return the observations that networks learn from.

    Raises:
        DatasetError: there are none, or none that a network can take.
    """
    found = dataset.base.observations
    if isinstance(found, Vectors):
        return found
    if not isinstance(found, Images):
        raise DatasetError(
            "neural learners need images or vectors, and this dataset has neither; its learners are uds and adapted"
        )
    shape = found.shape
    if len(shape) != 3 or shape[:2] != (SIDE, SIDE) or not 1 <= shape[2] <= CHANNELS:
        raise DatasetError(
            f"neural learners take images of {SIDE} x {SIDE} cells and 1 to {CHANNELS} channels, not of shape {shape}"
        )
    return found


def architecture_of(dataset: OfflineDataset) -> Architecture:
    """Return the architecture of the networks that learn from a dataset.

    Raises:
        DatasetError: there is none for its observations.
    """
    observations = check_observations(dataset)
    return ARCHITECTURES[type(observations)](dataset.base, observations)


def layers_of(architecture: Architecture, flat: Float32Array, n_outputs: int) -> Any:
    """Return the parts of a network as views of its parameters [parameters]."""
    parts, used = [], 0
    for shape in architecture.shapes(n_outputs):
        size = int(np.prod(shape))
        parts.append(flat[used : used + size].reshape(shape))
        used += size
    return architecture.layers(*parts)


def new_network(architecture: Architecture, n_outputs: int, rng: np.random.Generator) -> Network:
    """Return a fresh network; weights are drawn uniformly within 1 / sqrt(inputs) of zero."""
    size = sum(int(np.prod(shape)) for shape in architecture.shapes(n_outputs))
    flat, slopes = aligned_zeros(size), aligned_zeros(size)
    layers = layers_of(architecture, flat, n_outputs)
    for part, inputs in zip(layers, architecture.inputs, strict=True):
        part[:] = rng.uniform(-1, 1, part.shape) / np.sqrt(inputs)
    memory = Adam(aligned_zeros(size), aligned_zeros(size))
    return Network(flat, layers, slopes, layers_of(architecture, slopes, n_outputs), memory)


def target_network(architecture: Architecture, leader: Network) -> Network:
    """Return a target network that starts as a copy of its online network and has no gradient."""
    flat, nothing = aligned_zeros(len(leader.flat)), np.zeros(0, np.float32)
    flat[:] = leader.flat
    layers = layers_of(architecture, flat, len(leader.layers.output_bias))
    return Network(flat, layers, nothing, layers, Adam(nothing, nothing))
