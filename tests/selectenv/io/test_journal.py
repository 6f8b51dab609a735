"""Tuning journals: checked lines that Optuna itself can read, and the trials that survive damage."""

import optuna
import pytest
from optuna.storages.journal import JournalFileBackend

from experiments.cli import main as cli
from experiments.engine.repair import repair
from selectenv.errors import JournalError
from selectenv.io.journal import open_journal, repair_journal
from tests.damage import attempt, damaged_copies

optuna.logging.set_verbosity(optuna.logging.ERROR)
TRIALS = 30


def study(path):
    sampler = optuna.samplers.RandomSampler(seed=0)
    return optuna.create_study(
        study_name="s", storage=open_journal(path), direction="maximize", load_if_exists=True, sampler=sampler
    )


def run(path, trials=TRIALS):
    """Ask for trials three at a time, as the searches do."""
    opened = study(path)
    while len(finished(opened)) < trials:
        asked = [opened.ask() for _ in range(3)]
        values = [trial.suggest_float("x", -1, 1) + trial.suggest_int("y", 0, 9) for trial in asked]
        for trial, value in zip(asked, values, strict=True):
            trial.set_user_attr("labels", [1, 2])
            opened.tell(trial, value)
    return opened


def finished(opened):
    return {t.number: (t.value, t.params, t.user_attrs) for t in opened.trials if t.value is not None}


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    path = tmp_path_factory.mktemp("journal") / "tuning.log"
    run(path)
    return path


def test_optuna_reads_it(intact):
    theirs = optuna.storages.JournalStorage(JournalFileBackend(str(intact)))
    assert finished(optuna.load_study(study_name="s", storage=theirs)) == finished(study(intact))


def test_a_search_is_resumed(tmp_path):
    run(tmp_path / "parts.log", 9)
    assert len(finished(run(tmp_path / "parts.log"))) == TRIALS


def test_damage_is_named_and_never_used(intact, tmp_path):
    truth = finished(study(intact))
    path = tmp_path / "tuning.log"
    for copy in damaged_copies(intact.read_bytes()):
        path.write_bytes(copy)
        found = attempt(lambda: finished(study(path)), JournalError, path)
        if found is None:
            repair_journal(path, tmp_path / "backup")
            found = finished(study(path))
        assert found.items() <= truth.items()


def test_a_damaged_line_costs_the_trials_that_ran(intact, tmp_path, capsys):
    truth = finished(study(intact))
    lines = intact.read_bytes().splitlines(keepends=True)
    for number in range(1, len(lines), 7):
        path = tmp_path / f"{number}.log"
        path.write_bytes(b"".join(lines[:number]) + lines[number].replace(b"1", b"2") + b"".join(lines[number + 1 :]))
        if path.read_bytes() == intact.read_bytes():
            continue
        with pytest.raises(JournalError, match=rf"line {number + 1} is damaged.*`selectenv repair"):
            open_journal(path)
        assert cli.main(["repair", str(path)]) == 0
        assert "finished trials" in capsys.readouterr().out
        kept = finished(study(path))
        assert kept.items() <= truth.items()
        assert len(kept) >= TRIALS - 3
    assert len(finished(run(path))) >= TRIALS


def test_missing_lines_are_noticed(intact, tmp_path):
    lines = intact.read_bytes().splitlines(keepends=True)
    path = tmp_path / "tuning.log"
    path.write_bytes(b"".join(lines[:10] + lines[12:]))
    with pytest.raises(JournalError, match="line 11"):
        open_journal(path)


def test_damage_during_a_run_is_noticed(tmp_path):
    path = tmp_path / "tuning.log"
    opened = run(path, 3)
    with open(path, "ab") as file:
        file.write(b'{"op_code":4}\n')
    with pytest.raises(JournalError, match="damaged"):
        opened.ask()


def test_an_intact_journal_is_left_alone(intact):
    before = intact.read_bytes()
    assert "nothing to repair" in repair(intact)
    assert intact.read_bytes() == before


def test_journals_that_cannot_be_opened(tmp_path):
    with pytest.raises(JournalError, match="cannot be used"):
        open_journal(tmp_path)
    (tmp_path / "other.log").write_text("something else\n")
    with pytest.raises(JournalError, match="line 1"):
        open_journal(tmp_path / "other.log")
