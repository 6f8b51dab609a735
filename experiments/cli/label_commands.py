"""The commands of labelling sessions: `selectenv label start`, `ask`, `serve`, `status` and so on."""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import selectenv
from experiments.cli import serve_command
from experiments.cli.commands import AddCommand, RunCommand, epilog
from experiments.cli.session_options import add_annotator, add_session, open_session, range_text, say_range
from experiments.cli.tables import table
from experiments.labelling import label_studio
from experiments.labelling.label_imports import import_labels
from experiments.labelling.label_tables import TABLES, questions_csv
from experiments.labelling.page_views import range_of
from experiments.labelling.query_texts import printable
from experiments.labelling.terminal_queries import ask_in_terminal
from selectenv import LabellingSession, OfflineDataset
from selectenv.datasets import load
from selectenv.datasets.naming import unit
from selectenv.errors import OptionError
from selectenv.evaluation.value_bounds import ValueBounds
from selectenv.io.atomic import whole_file
from selectenv.labelling.queries import Query

TASK_DAYS = 7
"""Days for which exported tasks are not asked about elsewhere."""
BATCH = 10
"""Default number of questions in an export."""
OFFLINE = "export"
"""Name to which exported questions are leased."""
READING = ("state", "action", "episode", "time", "next_state", "terminated", "truncated", "missing", "vectors")
"""Options of `start` that `from_csv` and `from_parquet` take as they are."""


def add_to(add: AddCommand) -> None:
    """Add the commands to the command line."""
    command = add(
        "label",
        _no_action,
        "ask people for the rewards of a log of your own, and learn from their answers",
        {
            "label start log.csv --session labels.sqlite --state place --action move --episode trip --budget 30": (
                "make a session"
            ),
            "label ask labels.sqlite": "answer its questions in the terminal",
            "label serve labels.sqlite": "answer them on a page in the browser",
            "label status labels.sqlite": "show its progress",
            "label export labels.sqlite --out out": "write labels, policy and bounds as CSV files",
        },
    )
    actions = command.add_subparsers(required=True, metavar="ACTION", title="actions")

    def action(name: str, run: RunCommand, summary: str, examples: dict[str, str]) -> argparse.ArgumentParser:
        parser = actions.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=epilog(examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.set_defaults(command=run)
        return parser

    _add_start(action)
    parser = action(
        "ask",
        _ask,
        "ask in the terminal",
        {
            "label ask labels.sqlite": "answer until you type q",
            "label ask labels.sqlite --undo": "take the last answer back first",
        },
    )
    add_session(parser)
    add_annotator(parser)
    parser.add_argument("--undo", action="store_true", help="take the last answer back and ask again")
    parser = action(
        "serve",
        serve_command.run,
        "open a page to answer on",
        {
            "label serve labels.sqlite": "open the page in the browser; Ctrl-C stops it",
            "label serve labels.sqlite --no-browser --port 8000": "print the link, for example for an SSH tunnel",
            "label serve labels.sqlite --choices -1 0 1": "the answers of the number keys",
        },
    )
    add_session(parser)
    add_annotator(parser)
    serve_command.add_options(parser)
    parser = action(
        "status", _status, "show the progress of a session", {"label status labels.sqlite": "print a table"}
    )
    add_session(parser)
    parser = action(
        "release",
        _release,
        "take back questions that are handed out and not answered",
        {
            "label release labels.sqlite": "ask them elsewhere",
            "label release labels.sqlite --annotator label-studio": "only those that were exported to Label Studio",
        },
    )
    add_session(parser)
    parser.add_argument("--annotator", help="only the questions of this person (default: of everybody)")
    _add_export(action)
    parser = action(
        "import",
        _import,
        "read answers from a file",
        {
            "label import labels.sqlite labels.csv": "a CSV file with the columns state and reward",
            "label import labels.sqlite annotations.json": "annotations that Label Studio exported as JSON",
        },
    )
    add_session(parser)
    parser.add_argument("labels", type=Path, help="CSV file, or JSON file of Label Studio")
    add_annotator(parser)


def _no_action(options: argparse.Namespace) -> None:
    """Never called: argparse requires an action."""


def _add_start(action: AddCommand) -> None:
    parser = action(
        "start",
        _start,
        "make a session from a log",
        {
            "label start log.csv --session labels.sqlite --state place load --action move --episode trip --budget 30": (
                "states are made of two columns"
            ),
            "label start log.parquet --session labels.sqlite --state charge --bins charge=5 --action move"
            " --episode trip --budget 9": "a column of numbers, cut into five intervals",
            "label start log.csv --session labels.sqlite --state x v --action move --episode trip --budget 9"
            " --vectors --groups 50": "vectors of two numbers in 50 groups",
        },
    )
    parser.add_argument("log", type=Path, help="CSV or Parquet file with one row per step, or a dataset file (.npz)")
    parser.add_argument(
        "--delimiter", default=",", help="character between two fields of a CSV file (default: a comma)"
    )
    parser.add_argument("--encoding", default="utf-8", help="encoding of a CSV file, such as cp1252 (default: utf-8)")
    parser.add_argument("--decimal", default=".", help="decimal sign of numbers in a CSV file (default: a point)")
    parser.add_argument("--session", type=Path, required=True, help="file of the session to create")
    parser.add_argument("--state", nargs="+", metavar="COLUMN", help="columns that make up the state")
    parser.add_argument("--action", metavar="COLUMN", help="column of the action")
    parser.add_argument("--episode", metavar="COLUMN", help="column that tells episodes apart")
    parser.add_argument("--time", metavar="COLUMN", help="column that sorts the steps of an episode")
    parser.add_argument("--next-state", nargs="+", metavar="COLUMN", help="columns of the state that was entered")
    parser.add_argument("--terminated", metavar="COLUMN", help="column that says whether the episode terminated")
    parser.add_argument("--truncated", metavar="COLUMN", help="column that says whether the recording stopped")
    parser.add_argument(
        "--bins",
        nargs="+",
        default=[],
        metavar="COLUMN=BINS",
        help="cut continuous columns into a number of intervals (charge=5), or at edges (charge=0.25,0.5)",
    )
    parser.add_argument("--vectors", action="store_true", help="the columns of the state are numbers of a vector")
    parser.add_argument(
        "--groups", metavar="COUNT", help='what a label covers: so many clusters of the vectors, or "episode"'
    )
    parser.add_argument(
        "--missing", metavar="TEXT", help="text in place of missing entries of the state, such as unknown"
    )
    parser.add_argument("--budget", type=_budget, required=True, help="number of labels, or share of the states (0.3)")
    parser.add_argument("--strategy", default="auto", help="strategy that chooses the states (default: auto)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the strategy (default: 0)")
    parser.add_argument("--learner", default="uds", help="learner of the policy (default: uds)")
    parser.add_argument("--gamma", type=float, default=0.99, help="discount factor of learning (default: 0.99)")
    parser.add_argument(
        "--unseen", default="zero", choices=("zero", "exclude"), help="what actions that the log never took are worth"
    )
    parser.add_argument(
        "--answers-per-query", type=int, default=1, help="number of people who answer each question (default: 1)"
    )
    parser.add_argument(
        "--rewards", nargs=2, type=float, metavar=("LOW", "HIGH"), help="range of the rewards, for bounds on the value"
    )


def _add_export(action: AddCommand) -> None:
    parser = action(
        "export",
        _export,
        "write labels, policy and bounds as CSV files, or questions for another tool",
        {
            "label export labels.sqlite": "labels.csv, policy.csv and, with a range of rewards, curve.csv",
            "label export labels.sqlite --questions 20": "questions.csv with a column to fill in",
            "label export labels.sqlite --label-studio 20": "tasks for Label Studio",
        },
    )
    add_session(parser)
    parser.add_argument("--out", type=Path, default=Path("out"), help="directory of the files (default: out)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--label-studio",
        nargs="?",
        type=int,
        const=BATCH,
        metavar="TASKS",
        help=f"write the next questions as tasks for Label Studio (default: {BATCH})",
    )
    what.add_argument(
        "--questions",
        nargs="?",
        type=int,
        const=BATCH,
        metavar="COUNT",
        help=f"write the next questions as a CSV file to fill in (default: {BATCH})",
    )
    what.add_argument(
        "--rewards", nargs=2, type=float, metavar=("LOW", "HIGH"), help="store the range of the rewards, for bounds"
    )


def _start(options: argparse.Namespace) -> None:
    existed = options.session.exists()
    session = LabellingSession(
        _grouped(_dataset(options), options.groups),
        options.strategy,
        options.budget,
        options.session,
        options.seed,
        answers_per_query=options.answers_per_query,
        learner=options.learner,
        gamma=options.gamma,
        unseen=options.unseen,
        reward_range=options.rewards,
    )
    with session:
        what = "is this session already" if existed else "is ready"
        print(
            f"{options.session} {what}: {session.budget} labels for {session.dataset.n_states:,} "
            f"{unit(session.dataset)}s, chosen by {options.strategy}"
        )
        if options.rewards:
            say_range(session, options.session)
        _say_next(session, options.session)


def _grouped(dataset: OfflineDataset, groups: str | None) -> OfflineDataset:
    """Return a dataset over groups of its states, if that is wanted."""
    if groups is None:
        once = int((dataset.visits == 1).sum())
        if dataset.vectors is not None and 2 * once > dataset.n_states:
            print(
                f"warning: {once:,} of {dataset.n_states:,} vectors were seen once, and a label on one of them tells "
                "nothing about the others; --groups 50 labels 50 groups of similar vectors instead",
                file=sys.stderr,
            )
        return dataset
    number = groups.removeprefix("-").isdecimal()
    return selectenv.group_states(dataset, int(groups) if number else groups)


def _dataset(options: argparse.Namespace) -> OfflineDataset:
    """Return the data of a log; a column of rewards in a dataset file is left out."""
    if options.log.suffix == ".npz":
        return load(options.log).without_rewards
    missing = [name for name in ("state", "action") if not getattr(options, name)]
    if missing:
        raise OptionError(f"a log needs --{' and --'.join(missing)}: the names of its columns")
    roles = {name: getattr(options, name) for name in READING} | {"bins": dict(map(_bins, options.bins))}
    if options.log.suffix in (".parquet", ".pq"):
        return selectenv.from_parquet(options.log, **roles)
    written = {name: getattr(options, name) for name in ("delimiter", "encoding", "decimal")}
    return selectenv.from_csv(options.log, **roles, **written)


def _budget(text: str) -> int | float:
    try:
        return int(text) if text.removeprefix("-").isdecimal() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of labels nor a share of the states") from None


def _bins(text: str) -> tuple[str, int | list[float]]:
    """Return a column and its number of intervals, or the edges between them."""
    column, _, bins = text.rpartition("=")
    try:
        found = int(bins) if bins.isdecimal() else [float(edge) for edge in bins.split(",")]
    except ValueError:
        column = ""
    if not column:
        raise OptionError(f"--bins takes entries such as charge=5 (intervals) or charge=0.25,0.5 (edges), not {text!r}")
    return column, found


def _ask(options: argparse.Namespace) -> None:
    with open_session(options) as session:
        if options.undo:
            undone = session.undo(annotator=options.annotator)
            print(
                "there is no answer to take back"
                if undone is None
                else f"the answer about {printable(undone)} is taken back"
            )
        told = ask_in_terminal(session, options.annotator)
        print(f"\n{told} answer{'s' * (told != 1)} stored in {options.file}")
        _say_next(session, options.file)


def _status(options: argparse.Namespace) -> None:
    with open_session(options) as session:
        status = session.status()
        rows: list[tuple[str, Any]] = [
            ("data", session.settings.data),
            ("strategy", session.strategy.name),
            ("labels", f"{status.answered} of {status.budget}"),
            ("skipped", status.skipped),
            *((f"answers of {name or 'unnamed'}", count) for name, count in status.annotators.items()),
        ]
        for lease in session.handed_out():
            until = time.strftime("%Y-%m-%d %H:%M", time.localtime(lease.until))
            rows.append(("handed out", f"{printable(lease.id)} to {lease.annotator or 'unnamed'} until {until}"))
        if bounds := _bounds(session):
            rows += [
                ("range of the rewards", range_text(session)),
                ("value of the policy", f"{bounds.least:.4g} to {bounds.most:.4g}"),
                ("value of any policy", f"at most {bounds.upper:.4g}"),
            ]
        print(table(("", str(options.file)), rows))
        _say_next(session, options.file)


def _export(options: argparse.Namespace) -> None:
    out: Path = options.out
    with open_session(options) as session:
        if options.label_studio is not None:
            queries = _batch(session, options.label_studio, label_studio.ANNOTATOR)
            _write(out / "tasks.json", label_studio.tasks(session, queries))
            _write(out / "label-config.xml", label_studio.configuration(range_of(session)))
            print(
                f"next: make a Label Studio project with the labelling interface of {out / 'label-config.xml'}, import "
                f"{out / 'tasks.json'} there, and read what it exports as JSON with `selectenv label import "
                f"{options.file} EXPORT.json`. The tasks are not asked about elsewhere for {TASK_DAYS} days"
            )
        elif options.questions is not None:
            queries = _batch(session, options.questions, OFFLINE)
            _write(out / "questions.csv", questions_csv(queries))
            print(
                f"next: fill in the column reward of {out / 'questions.csv'}, then `selectenv label import "
                f"{options.file} {out / 'questions.csv'}`. An empty next_state means that the "
                "episode ended or that the log does not say more; the column ended counts the ends. The questions are "
                f"not asked elsewhere for {TASK_DAYS} days"
            )
        else:
            if options.rewards:
                session.set_reward_range(*options.rewards)
                say_range(session, options.file)
            for name, text in TABLES.items():
                if name == "curve.csv" and _bounds(session) is None:
                    print("no curve.csv: bounds need a range that holds all rewards; repeat with --rewards LOW HIGH")
                else:
                    _write(out / name, text(session))
            print(f"written: {session.policy().save(out / 'policy.npz')}")
            print(f"next: policy = selectenv.load_policy({str(out / 'policy.npz')!r}) in Python")
            _say_next(session, options.file)


def _batch(session: LabellingSession, count: int, annotator: str) -> list[Query]:
    """Return ``count`` questions: those that were exported before and have no answer, then new ones."""
    if count < 1:
        raise OptionError(f"the number of questions must be 1 or more, not {count}")
    mine = [session.query(lease.id) for lease in session.handed_out() if lease.annotator == annotator]
    more = count - len(mine)
    new = session.ask(more, annotator=annotator, lease=TASK_DAYS * 86_400, keep=True) if more > 0 else []
    if not mine and not new:
        raise OptionError(
            "there is nothing left to ask: the budget is spent, or others are working on the last questions"
        )
    return [*mine, *new][:count]


def _import(options: argparse.Namespace) -> None:
    with open_session(options) as session:
        result = import_labels(session, options.labels, options.annotator)
        print(f"{options.labels}: new answers: {result.told}; known before: {result.known}; skipped: {result.skipped}")
        if result.surplus:
            print(f"not needed, since their questions have all their answers: {result.surplus}")
        if result.differing:
            print(
                f"known before or not needed, but with other rewards: {result.differing}. Those stored "
                f"stay as they are; the page can change them: `selectenv label serve {options.file}`"
            )
        if result.unasked:
            print(f"not asked about yet: {result.unasked}; import the file again later to use them")
        _say_next(session, options.file)


def _release(options: argparse.Namespace) -> None:
    with open_session(options) as session:
        found = [one for one in session.handed_out() if options.annotator in (None, one.annotator)]
        for one in found:
            session.release(one.id, annotator=one.annotator)
        print(f"questions taken back: {len(found)}")
        _say_next(session, options.file)


def _write(path: Path, text: str) -> None:
    with whole_file(path) as file:
        file.write(text.encode())
    print(f"written: {path}")


def _bounds(session: LabellingSession, *, explain: bool = False) -> ValueBounds | None:
    """Return the bounds; None without a range of the rewards, or if an answer lies outside it.

    Args:
        session: the session.
        explain: whether to print which answer lies outside the range.
    """
    if session.reward_range is None:
        return None
    try:
        return session.bounds()
    except OptionError as error:
        if explain:
            print(f"there is no bound: {error}; `selectenv label export {session.path} --rewards LOW HIGH` changes it")
        return None


def _say_next(session: LabellingSession, file: Path) -> None:
    """Print the progress of the session and what to do next."""
    status = session.status()
    if bounds := _bounds(session, explain=True):
        regret = f"{bounds.regret:.4g}"
        print(f"in the model of the data, the policy so far earns at most {regret} less than the best one")
    if status.done:
        print(
            f"the budget is spent; next: `selectenv label export {file}` writes labels and policy, "
            f"`selectenv label ask {file} --undo` takes the last answer back"
        )
    elif status.handed_out >= status.left:
        print(
            f"the last questions are handed out; next: `selectenv label status {file}` shows to whom, "
            f"`selectenv label release {file}` takes them back"
        )
    else:
        print(
            f"{status.answered} of {status.budget} labels; next: `selectenv label ask {file}` asks for more, "
            f"`selectenv label serve {file}` does so on a page, `selectenv label export {file}` writes what is there"
        )
