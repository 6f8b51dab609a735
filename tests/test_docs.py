"""The README and every page under docs/: snippets run and print what they say, commands exist, links resolve."""

import contextlib
import io
import re
import shlex
import subprocess
import tomllib
from importlib.util import find_spec

import gymnasium as gym
import pytest

import agents
import selectenv
from experiments.cli import main as cli
from experiments.studies import find_studies
from selectenv.learners import LEARNERS
from selectenv.references import is_reference
from tests.markdown_pages import PAGES, ROOT, Block, blocks, name_of, prose, slugs
from tests.stress import repetitions

TUTORIALS = "docs/tutorials/"
"""Pages whose blocks build on each other; that of the labelling page is run by test_docs_story.py."""
OWN_OPTIONS = ("demo", "bench")
"""Commands that parse their options themselves."""
LINKS = [
    (name_of(page), target)
    for page in PAGES
    for target in re.findall(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)", prose(page))
]


EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def commands() -> list[tuple[str, str]]:
    """Return every command in a shell block or in inline code, with its page."""
    found = [(block.page, line.split("#")[0].strip()) for block in blocks("bash") for line in block.code.splitlines()]
    for page in PAGES:
        inline = re.findall(r"`((?:selectenv|make|python -m selectenv)(?: [^`]+)?)`", prose(page))
        found += [(name_of(page), " ".join(code.split())) for code in inline]
    return list(dict.fromkeys(found))


@pytest.fixture
def one_torch_thread():
    """Small networks train several times faster on one thread when other tests use the remaining cores."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def same_registries(monkeypatch):
    """Forget what a snippet registers, so that other tests see only what the package has."""
    for registry in (selectenv.WORLDS, LEARNERS, agents.AGENTS):
        monkeypatch.setattr(registry, "_rows", dict(registry._rows))
    ids = dict(gym.registry)
    yield
    gym.registry.clear()
    gym.registry.update(ids)


def run_snippet(block: Block, names: dict) -> str:
    """Run a snippet, check that it prints what its comments say, and return all that it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.code, str(block), "exec"), names)
    lines = printed.getvalue().splitlines()
    for said in re.findall(r"^ *print\(.*\)  # (.*)$", block.code, flags=re.MULTILINE):
        assert said in lines
    return printed.getvalue()


@pytest.mark.usefixtures("one_torch_thread", "same_registries")
@pytest.mark.parametrize("block", [block for block in blocks("python") if TUTORIALS not in block.page], ids=str)
def test_snippet_runs_and_prints_what_it_says(block: Block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_snippet(block, {"__name__": "__main__"})


@pytest.mark.usefixtures("one_torch_thread", "same_registries")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")
@pytest.mark.parametrize("page", sorted({block.page for block in blocks("python") if TUTORIALS in block.page}))
def test_tutorial_runs_from_the_first_block_to_the_last(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "__main__"}
    printed = "".join(run_snippet(block, names) for block in blocks("python") if block.page == page)
    for shown in blocks("text"):
        assert shown.page != page or shown.code in printed


@pytest.mark.parametrize("page", [page for page in PAGES if TUTORIALS in name_of(page)], ids=name_of)
def test_tutorials_are_short_and_have_output_to_compare(page):
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert re.search(r"print\(.*\)  # ", text)


@pytest.mark.usefixtures("one_torch_thread")
def test_maskable_ppo_comes_close_to_greedy_in_tree():
    steps = repetitions(1_000, 10_000)
    env = selectenv.make_env("Tree", budget=9)
    greedy, ppo = agents.make("sequential-greedy"), agents.make("maskable-ppo")
    greedy.train(env)
    ppo.train(env, steps=steps)
    share = 0.95 if steps == 10_000 else 0.25
    assert agents.play(env, ppo).performance > share * agents.play(env, greedy).performance


@pytest.mark.parametrize(("page", "command"), commands())
def test_command_exists(page, command, capsys):
    program, *arguments = shlex.split(command)
    if program == "make":
        subprocess.run([program, *arguments, "--dry-run"], cwd=ROOT, check=True, capture_output=True)
        return
    if program == "python":
        assert arguments == ["-m", "selectenv"]
        assert find_spec("selectenv.__main__") is not None
        return
    if program == "pip":
        return
    assert program == "selectenv", f"{page}: {command}"
    if not arguments:
        return
    if arguments[0] == "--version":
        with pytest.raises(SystemExit) as stopped:
            cli.parser().parse_args(arguments)
        assert stopped.value.code == 0
    elif len(arguments) == 1 or arguments[0] in OWN_OPTIONS:  # options are looked up in the help of the command
        with pytest.raises(SystemExit) as stopped:
            cli.main([arguments[0], "--help"])
        assert stopped.value.code == 0
        shown = capsys.readouterr().out
        assert all(option in shown for option in arguments)
    else:
        assert callable(cli.parser().parse_args(arguments).command)
        if arguments[0] in ("run", "compare"):
            assert arguments[1] in (*find_studies(), "all", "rare-states") or is_reference(arguments[1])


@pytest.mark.parametrize(("page", "target"), LINKS)
def test_link_resolves(page, target):
    if target.startswith("https://"):
        return
    path, _, anchor = target.partition("#")
    linked = (ROOT / page).parent / path if path else ROOT / page
    assert linked.is_file()
    if linked.suffix in (".png", ".csv", ".html", ".gif"):
        assert linked.stat().st_size > 1000
    assert linked.suffix != ".gif" or linked.stat().st_size < 300_000
    if anchor:
        assert anchor in slugs(linked)


def test_every_page_and_every_figure_is_linked():
    linked = {((ROOT / page).parent / target.partition("#")[0]).resolve() for page, target in LINKS}
    for path in (*PAGES[1:], *(ROOT / "docs").glob("*.png"), *(ROOT / "docs").glob("*.gif")):
        assert path in linked, f"no page links {path.name}"


def test_extras_exist():
    for page in PAGES:
        for extras in re.findall(r"\.\[([\w,]+)\]'", prose(page)):
            assert set(extras.split(",")) <= set(EXTRAS)
    listed = re.search(r"The optional extras are (.*?)\.\n", (ROOT / "README.md").read_text(), flags=re.DOTALL)[1]
    assert set(re.findall(r"`(\w+)`", listed)) <= set(EXTRAS)


def test_source_tree_is_as_described():
    parents: list[str] = []
    described = next(block.code for block in blocks("") if block.page == "docs/developing.md")
    for line in described.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        parents = [*parents[:depth], line.split()[0]]
        assert (ROOT / "".join(parents)).exists(), line


def test_readme_is_short_and_defines_its_terms():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 200
    assert "https://arxiv.org/abs/2510.00144" in readme
    for term in ("RLLF", "UDS"):
        first = readme[readme.index(term) :]
        assert first.startswith(f"{term}** ("), f"{term} is used before it is defined"
    assert readme.index("adapted rule") == readme.index("**The adapted rule** learns") + len("**The ")
