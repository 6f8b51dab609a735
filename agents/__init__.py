"""The players: selection strategies against one interface."""

from agents.agent import Agent, RankingAgent, SamplingAgent, Taxonomy
from agents.play import Episode, play
from agents.sb3_agents import Sb3Agent
from agents.table import AGENTS, load, make
from agents.trained import Found, TrainedAgent, Training

__all__ = [
    "AGENTS",
    "Agent",
    "Episode",
    "Found",
    "RankingAgent",
    "SamplingAgent",
    "Sb3Agent",
    "Taxonomy",
    "TrainedAgent",
    "Training",
    "load",
    "make",
    "play",
]
