"""Agents for evaluation tools of other projects.

`fairseq_milk.agents.simuleval` needs SimulEval 1.1; no other module imports it.
"""
