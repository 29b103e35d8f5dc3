"""What every command shares: errors and exit codes, progress, files, locks, processes and signals.

Imports neither torch nor fairseq, nor any other package of fairseq_milk.
"""
