"""Jobs: whoever wants a verdict makes a `Job` and gives it to a `Judge`, the only caller of the engine's
verification. Begin with `judge`: what is verified, where it is stored, and how; `leases` keeps one command
from doing what another one does.
"""

from kernelproof.jobs.judge import RETRIED, AppendTo, Job, Judge, NewAttempt, Purpose, Verdict

__all__ = ["RETRIED", "AppendTo", "Job", "Judge", "NewAttempt", "Purpose", "Verdict"]
