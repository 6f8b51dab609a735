import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selectenv.kernels.network.cnn import outputs
from selectenv.kernels.network.packed_images import pack
from selectenv.kernels.network.patched_images import TOGETHER, PatchedImages
from selectenv.kernels.network.patches import find_patches
from selectenv.learners.architectures import ImageArchitecture, new_network

SHAPE = (10, 10, 4)


def images(rng: np.random.Generator, count: int, share: float) -> np.ndarray:
    return rng.random((count, *SHAPE)) < share


@settings(max_examples=25)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 7, TOGETHER - 1, TOGETHER, TOGETHER + 1, 3 * TOGETHER + 5]),
    st.sampled_from([0.0, 0.03, 0.3]),
    st.sampled_from([1, 6]),
)
def test_outputs_are_those_of_the_images(seed, count, share, n_outputs):
    rng = np.random.default_rng(seed)
    found = images(rng, count, share)
    layers = new_network(ImageArchitecture(SHAPE[2]), n_outputs, rng).layers
    patched = PatchedImages(find_patches(pack(found), SHAPE), np.arange(count))
    np.testing.assert_allclose(patched.outputs(layers), outputs(layers, found), rtol=1e-4, atol=1e-6)


def test_the_output_of_an_image_does_not_depend_on_the_others():
    rng = np.random.default_rng(0)
    found = images(rng, 600, 0.05)
    layers = new_network(ImageArchitecture(SHAPE[2]), 6, rng).layers
    patched = PatchedImages(find_patches(pack(found), SHAPE), np.arange(600))
    every = patched.outputs(layers)
    which = rng.random(600) < 0.3
    part = patched[which]
    assert len(part) == which.sum()
    np.testing.assert_array_equal(part.outputs(layers), every[which])
    order = rng.permutation(600)
    np.testing.assert_array_equal(PatchedImages(patched.patches, order).outputs(layers), every[order])


@pytest.mark.parametrize("n_outputs", [1, 6])
def test_no_images(n_outputs):
    rng = np.random.default_rng(0)
    patched = PatchedImages(find_patches(pack(images(rng, 3, 0.1)), SHAPE), np.zeros(0, np.int64))
    assert patched.outputs(new_network(ImageArchitecture(SHAPE[2]), n_outputs, rng).layers).shape == (0, n_outputs)
