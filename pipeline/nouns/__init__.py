"""The nouns of the field, one frozen type each, a module a noun. No torch, no database, no I/O.

Import from here: ``from pipeline.nouns import Candidate, Status, Verification``.
"""

from pipeline.nouns.base import Noun
from pipeline.nouns.build import Build, BuildRequest, BuildState, Route
from pipeline.nouns.cache import CacheSurvey, Removal
from pipeline.nouns.candidate import Candidate, Extraction
from pipeline.nouns.check import Check, CheckOutcome
from pipeline.nouns.cores import CoreShares
from pipeline.nouns.device_health import Quarantine
from pipeline.nouns.diagnosis import Diagnosis
from pipeline.nouns.environment import Environment, GpuInfo
from pipeline.nouns.exchange import Prompt, Response, Usage
from pipeline.nouns.finding import Finding, Severity
from pipeline.nouns.kernels import Kernels, Launch, Origin
from pipeline.nouns.measurement import Against, Interval, Measurement, Pace, Replayed
from pipeline.nouns.problem import Problem, Signature
from pipeline.nouns.reproduction import Reproduction, ReproductionFinding
from pipeline.nouns.roofline import Ceilings, Roofline
from pipeline.nouns.run import AttemptKey, RunSettings
from pipeline.nouns.status import Stage, Status
from pipeline.nouns.verification import (
    Determinism,
    ErrorClass,
    ErrorStatistics,
    Flag,
    Rigor,
    SandboxReport,
    Verification,
    VerifySettings,
)

__all__ = [
    "Against",
    "AttemptKey",
    "Build",
    "BuildRequest",
    "BuildState",
    "CacheSurvey",
    "Candidate",
    "Ceilings",
    "Check",
    "CheckOutcome",
    "CoreShares",
    "Determinism",
    "Diagnosis",
    "Environment",
    "ErrorClass",
    "ErrorStatistics",
    "Extraction",
    "Finding",
    "Flag",
    "GpuInfo",
    "Interval",
    "Kernels",
    "Launch",
    "Measurement",
    "Noun",
    "Origin",
    "Pace",
    "Problem",
    "Prompt",
    "Quarantine",
    "Removal",
    "Replayed",
    "Reproduction",
    "ReproductionFinding",
    "Response",
    "Rigor",
    "Roofline",
    "Route",
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
