"""The players: selection strategies against one interface."""

from agents.base import Agent, RankingAgent, SamplingAgent, Taxonomy
from agents.play import Episode, play
from agents.registry import AGENTS, load, make
from agents.sb3.sb3_agents import Sb3Agent
from agents.search.search_agent import Found, TrainedAgent, Training

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
