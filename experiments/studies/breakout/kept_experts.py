"""The weights that the training runs of Breakout's experts kept on their way, which do not ship with the package.

`kept_experts.json` holds a hash of each file, so that cells have the same keys with and without the files; only running
them needs the files. ``python -m experiments.studies.breakout.kept_experts DIRECTORY`` updates it.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from experiments.studies.game_episodes import file_mark
from selectenv.errors import OptionError
from selectenv.io.atomic import whole_file

MARKS = Path(__file__).with_suffix(".json")
VARIABLE = "SELECTENV_EXPERTS"
"""Environment variable with the directory of the training runs; by default that of `selectenv train-expert`."""


class KeptExpert(NamedTuple):
    """The weights of one training run after some frames."""

    seed: int
    frames: int
    mark: str

    @property
    def name(self) -> str:
        """The seed and the frames, for tables and figures."""
        return f"seed {self.seed}, {self.frames / 1e6:g}M frames"

    @property
    def file(self) -> str:
        """The file, relative to the directory of the training runs."""
        return f"breakout-{self.seed}/weights-{self.frames}.npz"


def kept_experts(path: Path = MARKS) -> list[KeptExpert]:
    """Return the experts whose hashes are known, by frames (the latest first) and seed."""
    marks = json.loads(path.read_text())
    found = [KeptExpert(*_numbers(file), mark) for file, mark in marks.items()]
    return sorted(found, key=lambda expert: (-expert.frames, expert.seed))


def weights_path(file: str, mark: str) -> str:
    """Return the path of kept weights.

    Raises:
        OptionError: there is no such file, or it has other weights than those that are known.
    """
    path = Path(os.environ.get(VARIABLE, "out/experts")) / file
    if not path.exists():
        raise OptionError(
            f"{path} does not exist: set {VARIABLE} to the directory of the training runs, or train the expert with "
            f"`selectenv train-expert Breakout --seed {_numbers(file)[0]}`"
        )
    if file_mark(path) != mark:
        raise OptionError(
            f"{path} has other weights than those of the stored results: use those, or update the hashes with "
            f"`python -m experiments.studies.breakout.kept_experts {path.parent.parent}`"
        )
    return str(path)


def update_marks(folder: Path, path: Path = MARKS) -> int:
    """Add the hashes of all kept weights in a directory of training runs; return how many are known then."""
    marks = json.loads(path.read_text()) if path.exists() else {}
    for file in folder.glob("breakout-*/weights-*.npz"):
        marks[f"{file.parent.name}/{file.name}"] = file_mark(file)
    with whole_file(path) as out:
        out.write(f"{json.dumps({file: marks[file] for file in sorted(marks, key=_numbers)}, indent=1)}\n".encode())
    return len(marks)


def _numbers(file: str) -> tuple[int, int]:
    """Return the seed and the frames in the name of a file."""
    seed, frames = re.findall(r"\d+", file)
    return int(seed), int(frames)


if __name__ == "__main__":
    print(f"{update_marks(Path(sys.argv[1]))} files are known")
