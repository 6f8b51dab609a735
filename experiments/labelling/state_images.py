"""Image states as PNG files."""

import struct
import zlib

from selectenv.datasets.images import Images
from selectenv.rendering.frames import colours
from selectenv.typing import ByteArray


def state_png(images: Images, number: int) -> bytes:
    """Return the image of a state, one pixel per cell."""
    return png(colours(images[number]))


def png(pixels: ByteArray) -> bytes:
    """Return RGB pixels [rows, columns, 3] as a PNG file."""
    rows, columns, _ = pixels.shape
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)  # 8 bits per channel, RGB, no interlacing
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)  # each line is stored as it is
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
