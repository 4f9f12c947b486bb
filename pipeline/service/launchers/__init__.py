"""Launchers of the evaluation service: they start workers in a Ray cluster or under Slurm.

Work comes to workers from the queue in the database. A launcher that is lost loses no work.
"""
