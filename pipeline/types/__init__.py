"""The types that all processes share: frozen records and enums. No torch, no database, no I/O.

Begin with `exchange` (prompt, response, candidate), `problem` and `verification`: they are one attempt from
question to verdict. `measurement`, `build` and `environment` are the parts of a verification,
`status` its outcomes; `run` holds what a batch stores and shows. Import from here, whatever module a type is
in: ``from kernelproof.types import Candidate, Status, Verification``.
"""

from kernelproof.choices import ErrorClass, Flag, Rigor
from kernelproof.types.build import Build, BuildRequest, BuildState, CacheSurvey, Removal, Route
from kernelproof.types.environment import CoreShares, Diagnosis, Environment, GpuInfo, Quarantine
from kernelproof.types.exchange import Candidate, Extraction, Plan, Prompt, Response, Usage
from kernelproof.types.measurement import (
    Against,
    Ceilings,
    Interval,
    Kernels,
    Launch,
    Measurement,
    Origin,
    Pace,
    Replayed,
    Roofline,
)
from kernelproof.types.problem import Problem, Signature
from kernelproof.types.record import FrozenRecord
from kernelproof.types.reproduction import Reproduction, ReproductionFinding
from kernelproof.types.run import AttemptKey, RunSettings
from kernelproof.types.status import Stage, Status
from kernelproof.types.verification import (
    Check,
    CheckOutcome,
    Determinism,
    ErrorStatistics,
    Finding,
    SandboxReport,
    Setting,
    Severity,
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
