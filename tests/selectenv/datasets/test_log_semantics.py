"""Logs with every combination of roles, against a row-by-row reading of what the documentation says."""

import random

import pandas as pd
import pytest

import selectenv
from selectenv.errors import LogError
from tests.stress import repetitions

FLAGS = ("terminated", "truncated")
SEEDS = repetitions(150, 3_000)


def random_log(rng):
    """Return the rows of a short log, and which columns beside state and action it has."""
    roles = {role for role in ("episode", "next_state", *FLAGS) if rng.random() < 0.5}
    rows, episode = [], 0
    for _ in range(rng.randint(1, 8)):
        episode += rng.random() < 0.3
        rows.append(
            {
                "state": rng.choice("abc"),
                "action": None if rng.random() < 0.12 else rng.choice("xy"),
                "episode": episode,
                "next_state": None if rng.random() < 0.3 else rng.choice("abcd"),
                "terminated": rng.random() < 0.25,
                "truncated": rng.random() < 0.15,
            }
        )
    if "episode" in roles and rng.random() < 0.3:
        rng.shuffle(rows)
    return rows, roles


def read(rows, roles):
    """Return state, action, next state, terminated, truncated and start of each transition; None if it is refused."""
    if not roles & {"episode", "next_state", "terminated"}:
        return None
    rows = sorted(rows, key=lambda row: row["episode"]) if "episode" in roles else rows
    ends = [_ends_here(row, after, roles) for row, after in zip(rows, [*rows[1:], None], strict=True)]
    after = [
        (row["next_state"] if "next_state" in roles else None) or (None if ends[i] else rows[i + 1]["state"])
        for i, row in enumerate(rows)
    ]
    flags = [{flag: flag in roles and row[flag] for flag in FLAGS} for row in rows]
    for i, row in enumerate(rows):
        if row["action"] is None:
            if not ends[i]:
                return None
            if i > 0 and not ends[i - 1]:  # it only says in which state its episode ended
                ends[i - 1] = True
                flags[i - 1] = {flag: flags[i - 1][flag] or flags[i][flag] for flag in FLAGS}
    kept = [i for i, row in enumerate(rows) if row["action"] is not None]
    acted, found, start = {rows[i]["state"] for i in kept}, [], True
    for i, following in zip(kept, [*kept[1:], None], strict=False):
        jump = not ends[i] and (following is None or after[i] != rows[following]["state"])
        last = ends[i] or (jump and "episode" not in roles)
        if "episode" in roles and not last and any(flags[i].values()):
            return None
        known = after[i] in acted
        terminated, truncated = flags[i].values()
        ended = terminated if "terminated" in roles else last and not known and not truncated
        cut = (truncated or last or jump) and not ended
        found.append(
            (rows[i]["state"], rows[i]["action"], after[i] if known and not ended else None, ended, cut, start)
        )
        start = ended or cut
    return found or None


def _ends_here(row, after, roles):
    if after is None or ("episode" in roles):
        return after is None or row["episode"] != after["episode"]
    unknown = "terminated" not in roles and row["next_state"] is None
    return any(row[flag] for flag in FLAGS if flag in roles) or unknown


def transitions(data):
    """Return the same of a dataset."""
    ids, names = [*data.ids.tolist(), None], data.action_names.tolist()
    columns = (data.state, data.action, data.next_state, data.terminated, data.truncated, data.episode_start)
    return [
        (ids[state], names[action], ids[following], *flags)
        for state, action, following, *flags in zip(*(column.tolist() for column in columns), strict=True)
    ]


def test_logs_are_read_as_documented():
    refused = 0
    for seed in range(SEEDS):
        rows, roles = random_log(random.Random(seed))
        wanted = read(rows, roles)
        frame = pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in rows[0]})
        call = {"frame": frame, "state": "state", "action": "action", **{role: role for role in roles}}
        if wanted is None:
            with pytest.raises(LogError):
                selectenv.from_dataframe(**call)
            refused += 1
        else:
            assert transitions(selectenv.from_dataframe(**call)) == wanted, f"seed {seed}"
    assert SEEDS / 10 < refused < SEEDS / 2
