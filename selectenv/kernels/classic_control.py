"""Steps of two classic control environments, many episodes at once, with the formulas that Gymnasium uses.

Acrobot (Sutton 1996; two links of mass, length and inertia 1) is integrated by one Runge-Kutta step of 0.2 s, and
MountainCar (Moore 1990) by one Euler step. Gymnasium steps one episode at a time, in Python.
"""

import math

import numpy as np

from selectenv.kernels.compiled import exact_part, kernel
from selectenv.typing import BoolArray, Float32Array, FloatArray, IntArray

ACROBOT_STEP = 0.2
FASTEST_1, FASTEST_2 = 4 * math.pi, 9 * math.pi
"""Largest angular velocities of the two links."""
FORCE, GRAVITY, FASTEST = 0.001, 0.0025, 0.07
"""Of the car: its motor, the slope, and its largest velocity."""
LEFT, RIGHT, GOAL = -1.2, 0.6, 0.5
"""Of the valley."""


@exact_part
def _acrobot_slopes(
    angle_1: float, angle_2: float, speed_1: float, speed_2: float, torque: float
) -> tuple[float, float, float, float]:
    """Return the derivatives of the angles and of the angular velocities with respect to time."""
    sine, cosine = math.sin(angle_2), math.cos(angle_2)
    d1, d2 = 3.5 + cosine, 1.25 + 0.5 * cosine
    phi2 = 4.9 * math.sin(angle_1 + angle_2)
    phi1 = -(0.5 * speed_2 + speed_1) * speed_2 * sine + 14.7 * math.sin(angle_1) + phi2
    second = (torque + d2 / d1 * phi1 - 0.5 * speed_1 * speed_1 * sine - phi2) / (1.25 - d2 * d2 / d1)
    return speed_1, speed_2, -(d2 * second + phi1) / d1, second


@exact_part
def _wrapped(angle: float) -> float:
    """Return the same angle in [-pi, pi]."""
    while angle > math.pi:
        angle -= 2 * math.pi
    while angle < -math.pi:
        angle += 2 * math.pi
    return angle


@kernel
def step_acrobot(
    states: FloatArray, which: IntArray, actions: IntArray, observations: Float32Array
) -> tuple[FloatArray, BoolArray]:
    """Take one action in each of the lanes ``which``.

    Args:
        states: [lanes, 4] two angles and their velocities; receives the next states.
        which: [count] lanes.
        actions: [count] torques -1, 0 and 1, as 0, 1 and 2.
        observations: [lanes, 6] receives the next observations.

    Returns:
        The rewards, and whether the episodes terminated, both [count].
    """
    reward, terminated = np.empty(len(which)), np.empty(len(which), np.bool_)
    half = ACROBOT_STEP / 2
    for i in range(len(which)):
        s, seen, torque = states[which[i]], observations[which[i]], actions[i] - 1.0
        a, b, c, d = s[0], s[1], s[2], s[3]
        p = _acrobot_slopes(a, b, c, d, torque)
        q = _acrobot_slopes(a + half * p[0], b + half * p[1], c + half * p[2], d + half * p[3], torque)
        r = _acrobot_slopes(a + half * q[0], b + half * q[1], c + half * q[2], d + half * q[3], torque)
        t = _acrobot_slopes(
            a + ACROBOT_STEP * r[0], b + ACROBOT_STEP * r[1], c + ACROBOT_STEP * r[2], d + ACROBOT_STEP * r[3], torque
        )
        for j in range(4):
            s[j] += ACROBOT_STEP / 6 * (p[j] + 2 * q[j] + 2 * r[j] + t[j])
        s[0], s[1] = _wrapped(s[0]), _wrapped(s[1])
        s[2] = min(max(s[2], -FASTEST_1), FASTEST_1)
        s[3] = min(max(s[3], -FASTEST_2), FASTEST_2)
        seen[0], seen[1], seen[2], seen[3] = math.cos(s[0]), math.sin(s[0]), math.cos(s[1]), math.sin(s[1])
        seen[4], seen[5] = s[2], s[3]
        terminated[i] = -math.cos(s[0]) - math.cos(s[0] + s[1]) > 1
        reward[i] = 0.0 if terminated[i] else -1.0
    return reward, terminated


@kernel
def step_mountain_car(
    states: FloatArray, which: IntArray, actions: IntArray, observations: Float32Array
) -> tuple[FloatArray, BoolArray]:
    """Take one action in each of the lanes ``which``.

    Args:
        states: [lanes, 2] position and velocity; receives the next states.
        which: [count] lanes.
        actions: [count] left, none and right, as 0, 1 and 2.
        observations: [lanes, 2] receives the next observations.

    Returns:
        The rewards, and whether the episodes terminated, both [count].
    """
    terminated = np.empty(len(which), np.bool_)
    for i in range(len(which)):
        s, seen = states[which[i]], observations[which[i]]
        velocity = s[1] + (actions[i] - 1) * FORCE - math.cos(3 * s[0]) * GRAVITY
        velocity = min(max(velocity, -FASTEST), FASTEST)
        s[0] = min(max(s[0] + velocity, LEFT), RIGHT)
        s[1] = 0.0 if s[0] == LEFT and velocity < 0 else velocity
        seen[0], seen[1] = s[0], s[1]
        terminated[i] = s[0] >= GOAL and s[1] >= 0
    return np.full(len(which), -1.0), terminated
