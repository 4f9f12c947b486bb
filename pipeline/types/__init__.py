"""The types of the field: frozen records, a module for each. No torch, no database, no I/O.

Import from here: ``from kernelproof.types import Candidate, Status, Verification``.
"""

from kernelproof.choices import ErrorClass, Flag, Rigor
from kernelproof.types.base import FrozenRecord
from kernelproof.types.build import Build, BuildRequest, BuildState, Route
from kernelproof.types.cache import CacheSurvey, Removal
from kernelproof.types.candidate import Candidate, Extraction
from kernelproof.types.check import Check, CheckOutcome
from kernelproof.types.core_shares import CoreShares
from kernelproof.types.device_health import Quarantine
from kernelproof.types.diagnosis import Diagnosis
from kernelproof.types.environment import Environment, GpuInfo
from kernelproof.types.exchange import Prompt, Response, Usage
from kernelproof.types.finding import Finding, Severity
from kernelproof.types.kernels import Kernels, Launch, Origin
from kernelproof.types.measurement import Against, Interval, Measurement, Pace, Replayed
from kernelproof.types.plan import Plan
from kernelproof.types.problem import Problem, Signature
from kernelproof.types.reproduction import Reproduction, ReproductionFinding
from kernelproof.types.roofline import Ceilings, Roofline
from kernelproof.types.run import AttemptKey, RunSettings
from kernelproof.types.setting import Setting
from kernelproof.types.status import Stage, Status
from kernelproof.types.verification import (
    Determinism,
    ErrorStatistics,
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
    "Plan",
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
    "Setting",
    "Severity",
    "Signature",
    "Stage",
    "Status",
    "Usage",
    "Verification",
    "VerifySettings",
]
