"""Ctrl-C stops every long computation, and no thread continues to compute afterwards."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.stress import repetitions

DEADLINE = 60
"""Seconds that a process may take to end; all computations below take far longer if nothing stops them."""

SCRIPT = """
import signal
import time
import numpy as np
import selectenv
from selectenv.learners import ExactLearner, SampledLearner

# A shell ignores SIGINT in the jobs that it starts in the background, and their children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

def world(horizon):
    return selectenv.from_outcomes(
        "pair", state=[0, 0, 1, 1], action=[0, 1, 0, 1], probability=[1.0] * 4, next_state=[0, 1, 1, 0],
        reward=[0.0, 1.0, 0.0, 1.0], terminated=[False] * 4, start=[1.0], horizon=horizon,
    )

def ring(n):
    states = np.arange(n)
    return selectenv.from_arrays(states, np.zeros(n, int), (states + 1) % n, np.zeros(n, bool), np.ones(n))

def compute(small):
{compute}

compute(small=True)  # compiles or loads the kernels
print("ready", flush=True)
try:
    compute(small=False)
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
while True:  # until no thread computes any more
    used = time.process_time()
    time.sleep(0.5)
    if time.process_time() - used < 0.1:
        break
"""

CASES = {
    "exact returns": "selectenv.make_problem(world(3 if small else 10**9)).performance([0])",
    "many label sets": """
        problem = selectenv.make_problem("CliffWalk", dataset_size=1000)
        sets = 1000 if small else 50_000_000
        problem.performance_many(np.broadcast_to(np.ones(problem.n_states, bool), (sets, problem.n_states)))
    """,
    "many label sets, long horizon": """
        problem = selectenv.make_problem(world(3 if small else 10**9))
        problem.performance_many(np.ones((10_000, 2), bool))
    """,
    "best return": "world(3 if small else 10**9).best_return()",
    "rollouts": """
        problem = selectenv.make_problem(world(3 if small else 10**9), evaluator="rollout", rollouts=10)
        problem.performance([0])
    """,
    "sampled learner": """
        learner, data = SampledLearner(passes=2 if small else 10**9, tolerance=0.0), ring(4)
        learner.fit(data, data.hidden_reward)
    """,
    "occupancy": """
        from selectenv.kernels.tabular.single import occupancy
        model = ring(200).empirical_model()
        occupancy(model, np.ones((200, 1)), np.eye(200)[0], 0.5 if small else 1 - 1e-12)
    """,
    "collecting": """
        from selectenv.datasets import collect, dataset_spec
        own, size = world(50), 1000 if small else 150_000_000
        collect(own, dataset_spec(own, expert_share=0.5, mixture="all", expert="optimal", size=size, seed=0))
    """,
    "brute force": """
        import agents
        agent = agents.make("brute-force", max_evaluations=10**12)
        agent.train(selectenv.make_env("Tree", budget=1 if small else 14, dataset_size=1000))
    """,
    "network training": """
        options = dict(dataset_size=1000, learner="iql-adapted", rollouts=1)
        problem = selectenv.make_problem("Breakout", updates=2 if small else 10**6, **options)
        problem.performance(np.ones(problem.n_states, bool))
    """,
}


def run(compute, delay):
    """Start a computation, interrupt it after a delay and return what the process printed."""
    code = SCRIPT.format(compute=textwrap.indent(textwrap.dedent(compute).strip(), "    "))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=os.environ)
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=DEADLINE)
    finally:
        process.kill()
        process.wait()
    return printed.split(), process.returncode


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for a single process")
@pytest.mark.parametrize("case", list(CASES)[: repetitions(3, len(CASES))])
@pytest.mark.parametrize("delay", [0.5, 0.0, 2.0][: repetitions(1, 3)])
def test_ctrl_c_stops_a_long_computation(case, delay):
    assert run(CASES[case], delay) == (["interrupted"], 0)
