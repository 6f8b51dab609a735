"""Read the records of a damaged SQLite file page by page, without relying on its header, its schema or its tree.

SQLite stops at the first invalid page, and all rows that it would have reached from there are lost.
This reader scans every page of the file instead and yields whatever parses as a record; the caller decides by the
digests of the records which of them are intact. The layout is that of https://www.sqlite.org/fileformat2.html for
tables WITHOUT ROWID, with pages of `PAGE` bytes and text in UTF-8.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

PAGE = 4096
FILE_HEADER = 100
LEAF_HEADER, INTERIOR_HEADER = 8, 12
MOST_LOCAL = (PAGE - 12) * 64 // 255 - 23
"""Bytes of a record that are kept on its own page; longer records continue on overflow pages."""
LEAST_LOCAL = (PAGE - 12) * 32 // 255 - 23
INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

Value = None | int | float | str | bytes


def stored_records(path: Path) -> Iterator[tuple[Value, ...]]:
    """Yield every record that can be read, in the order of the pages; the same record may come more than once."""
    data = path.read_bytes()
    for start in range(0, len(data), PAGE):
        base = start + (FILE_HEADER if start == 0 else 0)
        for header, child in (
            (LEAF_HEADER, 0),
            (INTERIOR_HEADER, 4),
        ):  # the byte that distinguishes them may be damaged
            for offset in _cell_offsets(data[base + header : start + PAGE]):
                try:
                    yield _values(_payload(data, start, offset + child))
                except (ValueError, IndexError, struct.error):  # not a record
                    continue


def _cell_offsets(pointers: bytes) -> Iterator[int]:
    for (offset,) in struct.iter_unpack(">H", pointers[: len(pointers) // 2 * 2]):
        if not LEAF_HEADER <= offset < PAGE:
            return
        yield offset


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a variable-length integer and the position behind it."""
    value = 0
    for i in range(9):
        byte = data[at + i]
        if i == 8:
            return (value << 8) | byte, at + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, at + i + 1
    raise ValueError("unreachable")


def _payload(data: bytes, start: int, offset: int) -> bytes:
    """Return the bytes of the record at ``offset`` of the page that starts at ``start``."""
    size, at = _varint(data, start + offset)
    if not 0 < size <= len(data):
        raise ValueError("longer than the file")
    local = size
    if size > MOST_LOCAL:
        local = LEAST_LOCAL + (size - LEAST_LOCAL) % (PAGE - 4)
        local = local if local <= MOST_LOCAL else LEAST_LOCAL
    if at + local > start + PAGE:
        raise ValueError("reaches beyond its page")
    parts, left, at = [data[at : at + local]], size - local, at + local
    while left:
        (page,) = struct.unpack_from(">I", data, at)
        if page == 0:
            raise ValueError("ends too early")
        at = (page - 1) * PAGE
        taken = min(left, PAGE - 4)
        parts.append(data[at + 4 : at + 4 + taken])
        left -= taken
    payload = b"".join(parts)
    if len(payload) != size:
        raise ValueError("reaches beyond the file")
    return payload


def _values(payload: bytes) -> tuple[Value, ...]:
    """Return the columns of a record."""
    header, at = _varint(payload, 0)
    kinds = []
    while at < header:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Value] = []
    for kind in kinds:
        value, at = _value(payload, kind, at)
        values.append(value)
    if at != len(payload):
        raise ValueError("its columns do not fill it")
    return tuple(values)


def _value(payload: bytes, kind: int, at: int) -> tuple[Value, int]:
    """Return one column and the position behind it."""
    if kind == 0:
        return None, at
    if kind in INTEGER_BYTES:
        end = at + INTEGER_BYTES[kind]
        return int.from_bytes(payload[at:end], "big", signed=True), end
    if kind == 7:
        (number,) = struct.unpack_from(">d", payload, at)
        return float(number), at + 8
    if kind in (8, 9):
        return kind - 8, at
    if kind in (10, 11):
        raise ValueError("reserved")
    end = at + (kind - 12) // 2
    return (payload[at:end] if kind % 2 == 0 else payload[at:end].decode()), end
