"""Pictures of the worlds for their pages."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import selectenv
from experiments.analysis.best_known import best_known
from experiments.analysis.figures import new_figure, save, selections_figure
from experiments.protocol.budgets import BUDGETS
from selectenv.domains.gym_env import GymWorld
from selectenv.domains.gym_experts import load_gym_expert
from selectenv.domains.minatar.experts import load_expert
from selectenv.domains.minatar.games import Games, MinAtarWorld, stream_keys
from selectenv.random_problems import RandomProblems
from selectenv.rendering.frames import colours
from selectenv.rendering.selection import draw
from selectenv.worlds import CONTROL, GAMES, RANDOM, TABULAR

FRAMES = 4
"""Frames of an episode that are drawn side by side."""
GAME_STEPS, CONTROL_STEPS = 12, 20
"""Steps of the expert between two frames."""


def draw_world(world: str, path: Path) -> None:
    """Write a picture of a world: its layout, or frames of an episode of its expert."""
    if world in TABULAR:
        _draw_table(world, path)
    elif world in GAMES:
        _draw_frames(_game_frames(world), path)
    elif world in CONTROL:
        _draw_frames(_control_frames(world), path)
    elif world == RANDOM:
        _draw_random(path)
    else:
        _draw_small(world, path)


def _draw_table(world: str, path: Path) -> None:
    """Draw the world without labels, and with the best known set of the second published budget."""
    problem, labels = selectenv.make_problem(world), BUDGETS[world][1]
    best = best_known()[f"{world}/uds/{labels}"]
    labelled = np.zeros(problem.n_states, np.int64)
    labelled[problem.actions(best["ids"])] = 1
    title = f"the best known {labels} labels (UDS): return {best['return']:.2f}"
    selections_figure(problem, {"without labels": np.zeros_like(labelled), title: labelled}, path, "", (title,))


def _draw_random(path: Path) -> None:
    """Draw one random world of each kind."""
    kinds, rng = RandomProblems().kinds, np.random.default_rng(0)
    figure = new_figure(2.8 * len(kinds), 3)
    for i, kind in enumerate(kinds):
        problem = RandomProblems(padding=20, smallest=20, kinds=(kind,))(rng)
        everything = problem.dataset.labelable.astype(np.int64)
        draw(figure.add_subplot(1, len(kinds), i + 1), problem, everything, kind, numbered=False)
    save(figure, path)


def _draw_small(world: str, path: Path) -> None:
    """Draw a small instance of a world of any size, with all states labelled."""
    problem = selectenv.make_problem(world, n_states=40, dataset_size=5_000, cache=False)
    figure = new_figure(9, 2)
    everything = np.ones(problem.n_states, np.int64)
    draw(figure.add_subplot(), problem, everything, "40 states, all of them labelled", numbered=False)
    save(figure, path)


def _game_frames(world: str) -> list[Any]:
    place = MinAtarWorld(world)
    games, expert = Games(place, stream_keys(1, 0, "picture")), load_expert(place)
    shown = []
    for _ in range(FRAMES):
        for _ in range(GAME_STEPS):
            games.step(expert.actions(games.images))
        shown.append(colours(games.images[0]))
    return shown


def _control_frames(world: str) -> list[Any]:
    place = selectenv.WORLDS[world].make()
    assert isinstance(place, GymWorld)
    expert = load_gym_expert(place, "published")
    env = gym.make(place.spec.id, render_mode="rgb_array")
    observation, _ = env.reset(seed=0)
    shown = []
    for _ in range(FRAMES):
        for _ in range(CONTROL_STEPS):
            observation = env.step(int(expert.actions(np.asarray(observation, np.float32)[None])[0]))[0]
        shown.append(env.render())
    env.close()
    return shown


def _draw_frames(frames: list[Any], path: Path) -> None:
    figure = new_figure(2.6 * len(frames), 2.4)
    for i, frame in enumerate(frames):
        axes = figure.add_subplot(1, len(frames), i + 1)
        axes.imshow(frame, interpolation="nearest")
        axes.axis("off")
    save(figure, path)
