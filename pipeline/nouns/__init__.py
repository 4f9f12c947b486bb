"""The nouns of the field, one frozen type each, a module a noun. No torch, no database, no I/O.

Import from here: ``from pipeline.nouns import Candidate, Status, Verification``.
"""

from pipeline.nouns.base import Noun
from pipeline.nouns.build import Build, BuildRequest, BuildState
from pipeline.nouns.candidate import Candidate, Extraction
from pipeline.nouns.check import Check, CheckOutcome
from pipeline.nouns.diagnosis import Diagnosis
from pipeline.nouns.environment import Environment, GpuInfo
from pipeline.nouns.exchange import Prompt, Response, Usage
from pipeline.nouns.finding import Finding, Severity
from pipeline.nouns.measurement import Interval, Measurement, Pace
from pipeline.nouns.problem import Problem, Signature
from pipeline.nouns.reproduction import Reproduction, ReproductionFinding
from pipeline.nouns.run import AttemptKey, RunSettings
from pipeline.nouns.status import Stage, Status
from pipeline.nouns.verification import ErrorStatistics, SandboxReport, Verification, VerifySettings

__all__ = [
    "AttemptKey",
    "Build",
    "BuildRequest",
    "BuildState",
    "Candidate",
    "Check",
    "CheckOutcome",
    "Diagnosis",
    "Environment",
    "ErrorStatistics",
    "Extraction",
    "Finding",
    "GpuInfo",
    "Interval",
    "Measurement",
    "Noun",
    "Pace",
    "Problem",
    "Prompt",
    "Reproduction",
    "ReproductionFinding",
    "Response",
    "RunSettings",
    "SandboxReport",
    "Severity",
    "Signature",
    "Stage",
    "Status",
    "Usage",
    "Verification",
    "VerifySettings",
]
