"""Archives: results as a small text file that can be committed, and taken up by another machine.

An archive holds rows of the results store, digests included, one JSON list per line, sorted by key and compressed with
xz: the same results give the same file.
"""

import json
import lzma
from collections.abc import Iterable
from pathlib import Path

from experiments.engine.store import ResultsStore, Row, is_intact
from experiments.errors import StoreError
from selectenv.io.atomic import whole_file

FIRST_LINE = '"selectenv results 1"'
MOST_BYTES = 1 << 30
"""Size of an uncompressed archive, at most: archives are untrusted."""


def write_archive(store: ResultsStore, path: Path, studies: Iterable[str] | None = None) -> int:
    """Write results to an archive, together with those that it already holds; return how many it holds then.

    Args:
        store: the results.
        path: the archive; it need not exist.
        studies: names of the studies, or of pools of cells that studies share; all by default.

    Raises:
        StoreError: the archive or the store is damaged.
    """
    rows = {row[0]: row for row in read_archive(path)} if path.exists() else {}
    rows |= {row[0]: row for row in store.rows() if studies is None or row[1] in set(studies)}
    lines = [FIRST_LINE, *(json.dumps(rows[key]) for key in sorted(rows))]
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(lzma.compress("\n".join(lines).encode() + b"\n", preset=9))
    return len(rows)


def read_archive(path: Path) -> list[Row]:
    """Return the rows of an archive.

    Raises:
        StoreError: it cannot be read, is not an archive, or is damaged.
    """
    try:
        with open(path, "rb") as file:
            unpacking = lzma.LZMADecompressor(memlimit=MOST_BYTES)
            text = unpacking.decompress(file.read(), max_length=MOST_BYTES)
        first, *lines = text.decode().splitlines()
        rows = [tuple(json.loads(line)) for line in lines]
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error})") from None
    except (lzma.LZMAError, EOFError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise StoreError(f"{path} is not an archive of results, or is damaged ({error})") from None
    if first != FIRST_LINE or not unpacking.eof or not text.endswith(b"\n"):
        raise StoreError(f"{path} is not an archive of results, or is cut off: it must begin with {FIRST_LINE}")
    if wrong := sum(not is_intact(row) for row in rows):
        raise StoreError(f"{path} is damaged: {wrong} of {len(rows)} rows do not match their digests")
    return rows


def add_archive(store: ResultsStore, path: Path) -> int:
    """Add the results of an archive that the store does not have yet; return how many there were."""
    known = {row[0] for row in store.rows()}
    new = [row for row in read_archive(path) if row[0] not in known]
    with store.writing():
        store.add_rows(new)
    return len(new)
