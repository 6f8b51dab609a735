"""Rewrites the golden files: ``python -m tests.golden [ID ...]``; without ids, those of all registered ids."""

import json
import sys

from tests.golden.records import file_of, record, registered


def text_of(env_id: str) -> str:
    """Return the text of a golden file: one line per rule and solver, or per kind of result."""
    lines = (f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in record(env_id).items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    for env_id in sys.argv[1:] or registered():
        file_of(env_id).write_text(text_of(env_id), encoding="utf-8")
        print(f"{file_of(env_id)} written")
