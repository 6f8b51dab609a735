"""Shares of feedback stand for the numbers of labels of the recovered protocol."""

import pytest

from experiments.protocol import budgets
from experiments.protocol.budgets import BUDGETS, FEEDBACK, WORLDS, all_budgets, labels_for, percent, percentage

# Copied from the protocol, not from the code.
PROTOCOL = """
Graph         3  6  9 12 15
Tree          3  9 15 21 27
TwoRooms      6 15 24 36 45
TwoRoomsTrap  6 12 21 30 39
FrozenLake    2  4  6  8 10
CliffWalk     3 12 18 25 33
"""
TABLE = {name: [int(number) for number in numbers] for name, *numbers in map(str.split, PROTOCOL.strip().splitlines())}


@pytest.mark.parametrize(("world", "numbers"), TABLE.items())
def test_shares_stand_for_these_numbers_of_labels(world, numbers):
    assert [labels_for(world, share) for share in (0.1, 0.3, 0.5, 0.7, 0.9)] == numbers


def test_worlds_and_shares_come_in_the_published_order():
    assert WORLDS == tuple(BUDGETS) == tuple(TABLE)
    assert FEEDBACK == (0.1, 0.3, 0.5, 0.7, 0.9)


def test_the_table_of_populations_has_shares_of_its_own_in_one_world():
    own = {0.34: 15, 0.48: 21, 0.61: 27, 0.75: 33, 0.89: 39}
    assert {share: labels_for("TwoRoomsTrap", share) for share in own} == own
    assert {share: round(labels / 44, 2) for share, labels in own.items()} == {share: share for share in own}
    with pytest.raises(ValueError, match="not in tuple"):
        labels_for("TwoRooms", 0.34)


def test_all_budgets_of_a_world_are_sorted_and_distinct():
    assert all_budgets("Graph") == (3, 6, 9, 12, 15)
    assert all_budgets("TwoRoomsTrap") == (6, 12, 15, 21, 27, 30, 33, 39)
    assert set(budgets.ES_POPULATION_TRAP.values()) <= set(all_budgets("TwoRoomsTrap"))


def test_percentages_are_rounded():
    assert [percent(share) for share in (0.0, 0.146, 0.15, 0.874, 1.0)] == ["0 %", "15 %", "15 %", "87 %", "100 %"]
    assert [percentage(labels) for labels in ("0 %", "15 %", "100 %", 3)] == [0.0, 15.0, 100.0, 3.0]
