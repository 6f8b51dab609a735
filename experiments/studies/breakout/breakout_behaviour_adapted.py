"""How does the share of random actions in Breakout's data affect guided under the adapted rule, when a table learns?"""

from experiments.studies.breakout.behaviour_mixtures import behaviour_study

STUDY = behaviour_study("breakout-behaviour-adapted", __doc__, "adapted", place=24)
