"""How does the share of random actions in Breakout's data affect guided under UDS, when a table learns?"""

from experiments.studies.breakout.behaviour_mixtures import behaviour_study

STUDY = behaviour_study("breakout-behaviour-uds", __doc__, "uds", place=23)
