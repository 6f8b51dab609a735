"""Every sentence of the README and of docs/ that counts agreement says what the committed results say."""

import re

from selectenv.domains.minatar.games import GAMES
from tests.agreement_counts import HEURISTICS, TRAINED, agree_in_words, agreement, results, told
from tests.markdown_pages import text_of


def test_sentences_about_the_rule_count_the_control_of_heuristics():
    page = text_of("docs/studies.md")
    both = [[row for row in results() if row["study"] == name and row["by the rule"]] for name in HEURISTICS]
    (_, uds), (_, adapted) = map(agreement, both)
    assert f"With this rule {uds} and {adapted} wrong numbers agree in the tables of heuristics" in page
    cells = [row for rows in both for row in rows]
    assert f"and {len(told(cells))} of their {len(cells)} cells discriminate" in page
    heuristic, trained = (
        {
            (row["world"], row["labels"], row["study"].partition("-")[2]): row["published"]
            for row in results()
            if row["strategy"] == "guided" and row["study"] in studies and row["metric"] in ("return", "train")
        }
        for studies in (HEURISTICS, TRAINED)
    )
    same_numbers = sum(heuristic[key] == number for key, number in trained.items())
    assert f"because {same_numbers} of its {len(trained)} numbers are those of the tables of heuristics" in page


def test_sentences_about_games_count_the_verdicts_of_the_full_run():
    page, start = text_of("docs/minatar.md"), text_of("README.md")
    every = [row for row in results() if row["by the rule"]]
    breakout = [row for row in every if row["study"].startswith("breakout")]
    can = f"{len(told(breakout))} of the {len(breakout)} published numbers of Breakout can be told"
    assert can in page
    assert agree_in_words(told(breakout)).replace(" agree", " agree as printed") in page
    agree, swapped = agreement(told(breakout))
    assert f"of the numbers of Breakout that can be told, {agree} agree with an earlier tabular learner" in start
    assert f"tabular learner (swapped: {swapped})" in start


def test_sentences_about_full_labels_in_games_follow_from_the_verdicts():
    page, start = text_of("docs/minatar.md"), text_of("README.md")
    full = {
        row["world"]: row
        for row in results()
        if [row[name] for name in ("study", "setting", "strategy", "metric")]
        == ["minatar-trained", "paper", "reduced-brute-force", "return"]
    }
    agree = [game for game, row in full.items() if row["verdict"] == "agrees"]
    assert len(full) == len(GAMES)
    assert f"networks agree in {len(agree)} of {len(full)} games" in start
    assert ("returns with full labels reproduce in all four games" in page) == (len(agree) == len(full))
    shown = [f"{float(full[game]['ours']):.1f}, published {float(full[game]['published']):.1f}" for game in GAMES[:1]]
    shown += [f"{game} {float(full[game]['ours']):.1f}, {float(full[game]['published']):.1f}" for game in GAMES[1:]]
    assert all(numbers in start for numbers in shown)


def test_every_count_of_agreement_stands_beside_its_control():
    for page in ("README.md", "docs/studies.md", "docs/minatar.md", "docs/selectors.md"):
        for count in re.finditer(r"\d of (the )?[\d,]+ (\w+ ){0,12}agree\b", text_of(page)):
            following = text_of(page)[count.end() : count.end() + 60]
            assert "swapped: " in following or "wrong numbers" in count.group(0), (page, count.group(0), following)
