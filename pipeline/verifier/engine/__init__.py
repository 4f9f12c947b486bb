"""Schedules builds and referees on this machine: queue, cores, retries. No database, no keys, no torch.

Begin with `engine`: `Engine.verify(source, problem, settings)` is the one method that decides. It asks the
policy, has `build_stage` build, and hands the candidate to one of the `referees`, each a
`referee_process`. `core_sharing` divides the cores, `stop` ends a verification from outside.
"""
