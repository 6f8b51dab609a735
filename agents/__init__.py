"""Selection strategies behind one interface."""

from agents.base import Agent, RankingAgent, SamplingAgent, Taxonomy
from agents.registry import AGENTS, load, make, register  # isort: split

from agents.learned.selector import LearnedSelector
from agents.play import Episode, play
from agents.sb3.from_sb3 import from_sb3
from agents.sb3.sb3_agents import Sb3Agent
from agents.search.search_agent import SearchAgent, SearchResult, SearchTask

__all__ = [
    "AGENTS",
    "Agent",
    "Episode",
    "LearnedSelector",
    "RankingAgent",
    "SamplingAgent",
    "Sb3Agent",
    "SearchAgent",
    "SearchResult",
    "SearchTask",
    "Taxonomy",
    "from_sb3",
    "load",
    "make",
    "play",
    "register",
]
