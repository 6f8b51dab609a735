"""The published tables are the printed ones, and every reader puts each printed number where it belongs."""

import hashlib
from collections import Counter
from importlib import resources

import pytest

from experiments.protocol import published
from experiments.protocol.published import PublishedMean

DIGESTS = {
    "breakout_behaviour_adapted": "d7fa322eb97feb9af15ae9f3030f93fa82ada558c633e224c86730128b33f30a",
    "breakout_behaviour_uds": "c3148c97c6ff1fea0a1ce41418dd73fe8d9ad5fd71a5d431c4da783c24311e15",
    "breakout_reward_sums": "43e5acce3ae1627746b16854824aac149a6395e7a42ebdc65d0e7cc81921dd95",
    "breakout_unique_states": "dbc80065800df53e1aa5b640f8c9893ac32b88cab6e4cef5f68fb4212e259446",
    "es_iterations_ablation": "16eb01bc155840ff47a3558f4b39784448812339b13438e0ae465a0f8d7da444",
    "es_population_ablation": "f99f2dae60b36d5e0a93676d68db76521eb7a10e0e1ba9788bae784bfe9cc3e0",
    "heuristics_adapted": "83009da94ca94d75ee3318b803fb8bdbf259c0fb6b224a1ea2d4c3c79183bb3c",
    "heuristics_uds": "940cc74cc713ad93e3ecc12fbf79d1a360f7a6abb79b66f1eb817a54803637d6",
    "initial_sample_graph": "cf2352f307f20fbb4182bf21d7c947db6ab723146edb690281baaf53a5703043",
    "initial_sample_tworooms": "85a46f9847c3c941703ad90904cba07b47ed68789582bbbde373269be4752784",
    "minatar_uds": "27e82a99ae47aea484bf1af27422396d8d32b7bc685e58073ece0a65a6d05f61",
    "trained_adapted": "eae1684a9da944b814ad87d907bd8132c36787b04b506029d5dec1b2d7d79d41",
    "trained_uds": "53b9f18cdf9e2227246359414cb9221d48a73972d68996a49e47e8ac9cadedf8",
}
WORLDS = {"Graph", "Tree", "TwoRooms", "TwoRoomsTrap", "FrozenLake", "CliffWalk"}
SHARES = {0.1, 0.3, 0.5, 0.7, 0.9}


def test_the_tables_are_the_printed_ones():
    folder = resources.files("experiments.protocol").joinpath("published_tables")
    tables = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    assert tables == {f"{name}.csv": digest for name, digest in DIGESTS.items()}


# The cells below are copied by hand from the tables of the paper.


@pytest.mark.parametrize(
    ("learner", "world", "feedback", "strategy", "score", "gap"),
    [
        ("uds", "Graph", 0.1, "guided", (3.701, 0.129), 3.302),
        ("uds", "Graph", 0.1, "guided-on-policy", (3.208, 0.139), 3.795),
        ("uds", "Graph", 0.1, "visitation", (3.797, 0.151), 3.206),
        ("uds", "Graph", 0.1, "visitation-on-policy", (3.300, 0.142), 3.703),
        ("uds", "Graph", 0.1, "uniform", (2.949, 0.137), 4.054),
        ("uds", "FrozenLake", 0.9, "uniform", (0.697, 0.019), -0.043),
        ("uds", "TwoRoomsTrap", 0.5, "guided", (-16.440, 0.968), 17.440),
        ("adapted", "Graph", 0.7, "visitation", (7.229, 0.093), 0.771),
        ("adapted", "CliffWalk", 0.1, "uniform", (-488.198, 6.642), 245.953),
    ],
)
def test_heuristics(learner, world, feedback, strategy, score, gap):
    found = [
        r for r in published.heuristics(learner) if (r.world, r.feedback, r.strategy) == (world, feedback, strategy)
    ]
    assert [((row.score.mean, row.score.stderr), row.gap) for row in found] == [(score, gap)]


@pytest.mark.parametrize(
    ("table", "world", "feedback", "strategy", "train", "test"),
    [
        ("trained_uds", "Graph", 0.1, "es-50", 4.999, (4.996, 0.000)),
        ("trained_uds", "Graph", 0.1, "guided", 3.701, None),
        ("trained_uds", "TwoRoomsTrap", 0.3, "guided", -16.440, None),
        ("trained_adapted", "Graph", 0.1, "brute-force", 5.337, (3.032, 0.213)),
        ("trained_adapted", "Graph", 0.1, "es-200", 5.308, (3.014, 0.211)),
        ("trained_adapted", "CliffWalk", 0.1, "sequential-greedy", -242.245, (-231.272, 6.042)),
        ("trained_adapted", "CliffWalk", 0.1, "es-50", -409.384, (-414.365, 26.537)),
        ("es_iterations_ablation", "Graph", 0.1, "es-3x20", 7.003, (7.003, 0.000)),
        ("es_population_ablation", "Graph", 0.1, "es-10x15", 5.999, (6.001, 0.000)),
        ("es_population_ablation", "TwoRoomsTrap", 0.34, "es-10x5", 1.000, (1.000, 0.000)),
    ],
)
def test_searches(table, world, feedback, strategy, train, test):
    found = [r for r in published.searches(table) if (r.world, r.feedback, r.strategy) == (world, feedback, strategy)]
    expected = None if test is None else PublishedMean(*test)
    assert [(row.train, row.test) for row in found] == [(PublishedMean(train, None), expected)]


@pytest.mark.parametrize(
    ("world", "ratio", "feedback", "strategy", "score"),
    [
        ("Graph", 0.0, 0.1, "guided", (3.701, 0.129)),
        ("Graph", 0.0, 0.1, "es-50", (5.001, 0.000)),
        ("TwoRooms", 0.1, 0.7, "guided", (0.511, 0.050)),
    ],
)
def test_initial_samples(world, ratio, feedback, strategy, score):
    rows = published.initial_samples(world)
    found = [r.score for r in rows if (r.initial_ratio, r.feedback, r.strategy) == (ratio, feedback, strategy)]
    assert found == [PublishedMean(*score)]


def test_games():
    found = {(row.world, row.strategy, row.feedback): row.score for row in published.games()}
    assert found["Breakout", "reduced-brute-force", None] == PublishedMean(17.75, None)
    assert found["Breakout", "es-1000", 0.15] == PublishedMean(17.75, 0.85)
    assert found["Breakout", "guided", 0.15] == PublishedMean(7.13, 0.11)
    assert len(found) == 52


@pytest.mark.parametrize(
    ("learner", "ratio", "feedback", "score"),
    [
        ("uds", 0.3, 0.15, (16.27, 0.34)),
        ("uds", 0.7, 1.00, (7.59, 0.12)),
        ("adapted", 0.3, 0.00, (2.77, 1.04)),
        ("adapted", 1.0, 1.00, (5.46, 0.21)),
    ],
)
def test_behaviour(learner, ratio, feedback, score):
    rows = published.behaviour(learner)
    assert [r.score for r in rows if (r.expert_ratio, r.feedback) == (ratio, feedback)] == [PublishedMean(*score)]
    assert len(rows) == 40


def test_reward_sums():
    found = {(row.strategy, row.feedback): row.total for row in published.reward_sums()}
    assert found["visitation", 0.146] == PublishedMean(60936.980, 49.963)
    assert found["uniform", 0.146] == PublishedMean(10039.340, 368.025)
    assert len(found) == 12


def test_unique_states():
    assert published.unique_states() == {0.0: 99254, 0.3: 26255, 0.5: 13731, 0.7: 7110, 1.0: 3535}


def test_every_table_covers_all_worlds_and_shares_once():
    heuristics = {"uds": 5, "adapted": 3}
    for learner, strategies in heuristics.items():
        keys = Counter((row.world, row.feedback, row.strategy) for row in published.heuristics(learner))
        assert {(world, share) for world, share, _ in keys} == {(world, share) for world in WORLDS for share in SHARES}
        assert set(keys.values()) == {1}
        assert len(keys) == 6 * 5 * strategies
    for table, strategies in {"trained_uds": 5, "trained_adapted": 5, "es_iterations_ablation": 4}.items():
        keys = Counter((row.world, row.feedback, row.strategy) for row in published.searches(table))
        assert {(world, share) for world, share, _ in keys} == {(world, share) for world in WORLDS for share in SHARES}
        assert set(keys.values()) == {1}
        assert len(keys) == 6 * 5 * strategies


def test_errors_are_smaller_than_the_means_they_belong_to():
    """Most of them, in tables whose means lie far from 0: swapped columns would turn this around."""
    scores = [row.score for learner in ("uds", "adapted") for row in published.heuristics(learner)]
    assert all(score.stderr >= 0 for score in scores)
    assert sum(abs(score.mean) > score.stderr for score in scores) > 0.97 * len(scores)
    assert min(score.mean for score in scores) < -400
