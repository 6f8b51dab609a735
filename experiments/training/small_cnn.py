"""The small convolutional network of the MinAtar worlds, in torch."""

from typing import Any

from numpy.typing import NDArray

from selectenv.errors import MissingExtraError
from selectenv.kernels.network.cnn import FILTERS, HIDDEN, SIDE
from selectenv.typing import BoolArray

try:
    import torch
    from torch import nn
except ImportError as error:
    raise MissingExtraError(f"networks need torch ({error}): pip install 'selectenv[minatar]'") from error


class SmallCnn(nn.Sequential):
    """Network with 16 filters of 3 x 3, 128 hidden units and one output per action."""

    def __init__(self, channels: int, outputs: int) -> None:
        """Build the network for images with ``channels`` channels."""
        super().__init__(*feature_layers(channels), nn.Linear(HIDDEN, outputs))


def feature_layers(channels: int) -> list[nn.Module]:
    """Return the layers below the outputs."""
    flat = FILTERS * (SIDE - 2) ** 2
    return [nn.Conv2d(channels, FILTERS, 3), nn.ReLU(), nn.Flatten(), nn.Linear(flat, HIDDEN), nn.ReLU()]


def to_tensor(images: BoolArray) -> torch.Tensor:
    """Return images [batch, 10, 10, channels] as the input of the network: float32 [batch, channels, 10, 10]."""
    return torch.from_numpy(images).permute(0, 3, 1, 2).float()


def as_arrays(network: nn.Module) -> dict[str, NDArray[Any]]:
    """Return copies of the weights by name, as NumPy arrays."""
    return {name: value.detach().numpy().copy() for name, value in network.state_dict().items()}
