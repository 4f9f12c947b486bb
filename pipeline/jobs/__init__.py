"""Jobs: whoever wants a verdict makes a `Job` and gives it to a `Judge`, the only caller of the engine's
verification. Begin with `job` (what is verified, and where it is stored), then `judge`; `leases` keeps one
command from doing what another one does.
"""

from kernelproof.jobs.job import RETRIED, AppendTo, Job, NewAttempt, Purpose, Verdict
from kernelproof.jobs.judge import Judge

__all__ = ["RETRIED", "AppendTo", "Job", "Judge", "NewAttempt", "Purpose", "Verdict"]
