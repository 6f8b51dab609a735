"""Uses what an optional extra is for, where nothing else is installed: ``python -P tests/extra_smoke.py EXTRA``.

With ``-P``, because the directory of this file has packages of the same names as the ones that are installed.
"""

import sys
import tempfile
from pathlib import Path


def plot() -> None:
    from experiments.analysis.figures import new_figure, save

    save(new_figure(2, 2), Path("figure.png"))
    assert Path("figure.png").stat().st_size > 0


def meta() -> None:
    import agents
    import selectenv

    env = selectenv.make_env("Graph", budget=2, dataset_size=1_000)
    for name, options in (("optuna", {"max_evaluations": 5}), ("maskable-ppo", {})):
        agent = agents.make(name, **options)
        agent.train(env, **({"steps": 64} if name == "maskable-ppo" else {}))
        assert len(agents.play(env, agent).labels) == 2


def minatar() -> None:
    import selectenv

    problem = selectenv.make_problem("Breakout", dataset_size=1_000, rollouts=1)
    assert problem.performance(problem.dataset.labelable) >= 0


def cluster() -> None:
    from experiments.cli.main import main

    arguments = ["run", "heuristics-uds", "--only", "Graph/uniform", "--seeds", "2"]
    assert main([*arguments, "--jobs", "2"]) == 0
    from dask.distributed import Client, LocalCluster

    with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as local, Client(local):
        assert main([*arguments, "--results", "other.sqlite", "--cluster", local.scheduler_address]) == 0


def label() -> None:
    from experiments.labelling import page_app

    assert page_app.__doc__


def data() -> None:
    import selectenv

    log = selectenv.from_arrays([0, 1], [0, 1], [1, 0], [False, True], [0.0, 1.0])
    for library in ("pandas", "polars"):
        assert len(selectenv.from_dataframe(log.to_frame(library), "state", "action", episode="episode")) == 2
    import minari

    assert minari.__version__


def control() -> None:
    import selectenv

    assert selectenv.make_problem("CartPole", dataset_size=500, groups=10, learner="uds", rollouts=1).n_states == 10


CHECKS = {check.__name__: check for check in (plot, meta, minatar, cluster, label, data, control)}

if __name__ == "__main__":
    import os

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["SELECTENV_CACHE"] = folder
        CHECKS[sys.argv[1]]()
        os.chdir("/")
    print(f"{sys.argv[1]} works")
