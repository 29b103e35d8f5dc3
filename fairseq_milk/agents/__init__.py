"""Agents for other people's evaluation tools.

`fairseq_milk.agents.simuleval` needs SimulEval 1.1 and is imported only by name, so that nothing else needs it.
"""
