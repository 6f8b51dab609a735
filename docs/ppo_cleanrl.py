"""PPO in one file, in the style of CleanRL, on the native vector environment with flat observations.

The action mask stands at the end of the observation. Run it with ``python docs/ppo_cleanrl.py``.
"""

import argparse

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import selectenv  # noqa: F401 - registers the environments
from selectenv.wrappers import FlatObservation


class Agent(nn.Module):
    """A policy over the states that can still be labelled, and a value."""

    def __init__(self, inputs: int, actions: int, mask: slice) -> None:
        """Build two small networks."""
        super().__init__()
        self.mask = mask
        self.actor = nn.Sequential(
            nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, actions)
        )
        self.critic = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def policy(self, obs: torch.Tensor) -> Categorical:
        """Return the distribution over actions."""
        closed = obs[:, self.mask] < 0.5
        return Categorical(logits=self.actor(obs).masked_fill(closed, -1e8))

    def value(self, obs: torch.Tensor) -> torch.Tensor:
        """Return the value of each observation."""
        return self.critic(obs).flatten()


def train(args: argparse.Namespace) -> list[float]:
    """Train, and return the mean return of the episodes that ended in each iteration."""
    torch.manual_seed(args.seed)
    envs = FlatObservation(
        gym.make_vec(f"RewardSelection-{args.world}-v0", num_envs=args.num_envs, budget=args.budget, **args.options)
    )
    mask = envs.layout["action_mask"]
    agent = Agent(envs.single_observation_space.shape[0], int(envs.single_action_space.n), mask)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    shape = (args.num_steps, args.num_envs)
    obs = torch.zeros((*shape, *envs.single_observation_space.shape))
    actions, logprobs, rewards, dones, values = (torch.zeros(shape) for _ in range(5))
    seen, done = torch.from_numpy(envs.reset(seed=args.seed)[0]), torch.zeros(args.num_envs)
    returns, running = [], np.zeros(args.num_envs)
    for iteration in range(args.iterations):
        ended = []
        for step in range(args.num_steps):
            obs[step], dones[step] = seen, done  # after a done, the action is ignored: the environment is reset
            with torch.no_grad():
                policy = agent.policy(seen)
                action = policy.sample()
                actions[step], logprobs[step], values[step] = action, policy.log_prob(action), agent.value(seen)
            found, reward, terminated, _, _ = envs.step(action.numpy())
            rewards[step] = torch.from_numpy(reward)
            running += reward
            ended += running[terminated].tolist()
            running[terminated] = 0.0
            seen, done = torch.from_numpy(found), torch.from_numpy(terminated).float()
        with torch.no_grad():  # generalised advantage estimation
            advantages, last = torch.zeros(shape), torch.zeros(args.num_envs)
            following, next_done = agent.value(seen), done
            for step in reversed(range(args.num_steps)):
                delta = rewards[step] + following * (1 - next_done) - values[step]
                advantages[step] = last = delta + args.gae_lambda * (1 - next_done) * last
                following, next_done = values[step], dones[step]
            targets = advantages + values
        valid = torch.nonzero(dones.flatten() == 0).flatten()  # steps that were resets teach nothing
        flat_obs = obs.flatten(0, 1)
        for _ in range(args.epochs):
            for batch in valid[torch.randperm(len(valid))].split(args.batch_size):
                policy = agent.policy(flat_obs[batch])
                ratio = (policy.log_prob(actions.flatten()[batch]) - logprobs.flatten()[batch]).exp()
                advantage = advantages.flatten()[batch]
                advantage = (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8)
                clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
                loss = (
                    -torch.min(advantage * ratio, advantage * clipped).mean() - args.entropy * policy.entropy().mean()
                )
                loss = loss + 0.5 * (agent.value(flat_obs[batch]) - targets.flatten()[batch]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        returns.append(float(np.mean(ended)) if ended else float("nan"))
        print(f"iteration {iteration}: mean return {returns[-1]:.3f}")
    envs.close()
    return returns


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Return the hyperparameters."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", default="Graph")
    for name, default in {"budget": 6, "seed": 0, "iterations": 40, "num-envs": 64, "num-steps": 28}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in {"epochs": 4, "batch-size": 256}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, rate in {"learning-rate": 1e-3, "gae-lambda": 0.95, "clip": 0.2, "entropy": 0.01}.items():
        parser.add_argument(f"--{name}", type=float, default=rate)
    parser.set_defaults(options={"reward_mode": "marginal"})
    return parser.parse_args(given)


if __name__ == "__main__":
    train(arguments())
