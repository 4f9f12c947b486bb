"""The types of the field: frozen records, a module for each. No torch, no database, no I/O.

Import from here: ``from pipeline.types import Candidate, Status, Verification``.
"""

from pipeline.types.base import FrozenRecord
from pipeline.types.build import Build, BuildRequest, BuildState, Route
from pipeline.types.cache import CacheSurvey, Removal
from pipeline.types.candidate import Candidate, Extraction
from pipeline.types.check import Check, CheckOutcome
from pipeline.types.core_shares import CoreShares
from pipeline.types.device_health import Quarantine
from pipeline.types.diagnosis import Diagnosis
from pipeline.types.environment import Environment, GpuInfo
from pipeline.types.exchange import Prompt, Response, Usage
from pipeline.types.finding import Finding, Severity
from pipeline.types.kernels import Kernels, Launch, Origin
from pipeline.types.measurement import Against, Interval, Measurement, Pace, Replayed
from pipeline.types.problem import Problem, Signature
from pipeline.types.reproduction import Reproduction, ReproductionFinding
from pipeline.types.roofline import Ceilings, Roofline
from pipeline.types.run import AttemptKey, RunSettings
from pipeline.types.status import Stage, Status
from pipeline.types.verification import (
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
    "FrozenRecord",
    "GpuInfo",
    "Interval",
    "Kernels",
    "Launch",
    "Measurement",
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
