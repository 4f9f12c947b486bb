"""The routes and fields of KernelGYM, so that its own client gets our verdicts unchanged.

Source: the request and response models of KernelGYM's server (github.com/hkust-nlp/KernelGYM). A caller's
task id is the evaluation's idempotency key.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from kernelproof.db.evaluations import StoredEvaluation
from kernelproof.errors import UsageError
from kernelproof.service.middleware import Caller, Refused
from kernelproof.service.schemas import Code, EvaluationRequest, Word, answer
from kernelproof.service.state import Service, TheCaller, TheService, body_of, read, validated
from kernelproof.types import Status

router = APIRouter()
STATUSES = {
    "queued": "pending",
    "building": "processing",
    "built": "processing",
    "running": "processing",
    "done": "completed",
    "failed": "failed",
    "expired": "timeout",
    "cancelled": "cancelled",
}
PRIORITIES = {"low": -10, "normal": 0, "high": 10}
BEFORE_IT_RUNS = frozenset(
    {
        *(Status.NO_CODE, Status.SYNTAX_ERROR, Status.CONTRACT_ERROR, Status.POLICY_VIOLATION, Status.EMPTY),
        *(Status.BUILD_ERROR, Status.BUILD_TIMEOUT, Status.LOAD_ERROR, Status.TRUNCATED),
    }
)
"""The statuses of programs that are not there, or were not built."""
PREFIX = "kernelgym:"
TaskId = Annotated[str, Field(min_length=1, max_length=100)]
"""As long as KernelGYM's own may be."""


def key_of(task_id: str) -> str:
    """The idempotency key of a task."""
    return PREFIX + task_id


class Task(BaseModel):
    """KernelGYM's EvaluationRequest. Fields that its own harness needs and ours does not are read over."""

    task_id: TaskId
    reference_code: Code | None = None
    kernel_code: Code
    backend: str | None = None
    num_correct_trials: int = Field(default=3, ge=1, le=100)
    timeout: float = Field(default=300, ge=1, le=3600, allow_inf_nan=False)
    priority: str = "normal"
    entry_point: str = "Model"
    measure_performance: bool | None = None
    run_performance: bool | None = None
    force_refresh: bool = False
    problem: Word | None = Field(default=None, description="Ours: a problem's id in place of its source.")

    def as_request(self) -> EvaluationRequest:
        """The same as a request of ours. Raises UsageError."""
        if self.entry_point != "Model":
            raise UsageError(
                f"entry_point: {self.entry_point!r:.80}; a reference's class is named Model here"
            )
        timed = self.run_performance is not False and self.measure_performance is not False
        settings: dict[str, Any] = {"trials": self.num_correct_trials, "measure": timed}
        if self.backend is not None:
            settings["backend"] = self.backend
        return validated(
            EvaluationRequest,
            problem=self.problem,
            reference=None if self.problem else (self.reference_code or ""),
            source=self.kernel_code,
            settings=settings,
            priority=PRIORITIES.get(self.priority, 0),
            idempotency_key=key_of(self.task_id),
            reuse=not self.force_refresh,
        )


class Tasks(BaseModel):
    """KernelGYM's BatchEvaluationRequest."""

    batch_id: Word
    tasks: list[Task] = Field(min_length=1, max_length=100)


class Workflow(BaseModel):
    """KernelGYM's WorkflowRequest."""

    payload: dict[str, Any] = Field(default_factory=dict)
    task_id: TaskId | None = None


async def _evaluate(service: Service, caller: Caller, tasks: list[Task]) -> list[dict[str, Any]]:
    """Submits the tasks, and waits for their ends as long as the most patient one allows."""
    requests = [_request(task) for task in tasks]
    evaluations = await anyio.to_thread.run_sync(service.submit, caller, requests)
    seconds = max(task.timeout for task in tasks)
    with anyio.move_on_after(seconds):
        for each in evaluations:
            await service.until_ended(each, seconds)
    names = [task.task_id for task in tasks]
    return await anyio.to_thread.run_sync(lambda: [_result(service, caller, name) for name in names])


@router.post("/evaluate", openapi_extra=body_of(Task))
async def evaluate(request: Request, service: TheService, caller: TheCaller) -> dict[str, Any]:
    """One candidate; answers when it has ended, or its `timeout` is over."""
    return (await _evaluate(service, caller, [read(Task, await request.body())]))[0]


@router.post("/evaluate/batch", openapi_extra=body_of(Tasks))
async def evaluate_batch(request: Request, service: TheService, caller: TheCaller) -> dict[str, Any]:
    """Several candidates; answers when all have ended."""
    batch = read(Tasks, await request.body())
    results = await _evaluate(service, caller, batch.tasks)
    done = sum(each["status"] == "completed" for each in results)
    waiting = sum(each["status"] in ("pending", "processing") for each in results)
    return {
        "batch_id": batch.batch_id,
        "total_tasks": len(results),
        "completed_tasks": done,
        "failed_tasks": len(results) - done - waiting,
        "results": results,
        "batch_status": "processing" if waiting else "completed",
    }


@router.post("/workflow/submit", openapi_extra=body_of(Workflow))
async def workflow(request: Request, service: TheService, caller: TheCaller) -> dict[str, Any]:
    """One candidate in a workflow's payload."""
    body = read(Workflow, await request.body())
    payload = {**body.payload, **({"task_id": body.task_id} if body.task_id else {})}
    [result] = await _evaluate(service, caller, [read(Task, json.dumps(payload).encode())])
    return {"task_id": result["task_id"], "status": result["status"], "result": result}


@router.get("/workflow/results/{task_id}")
def workflow_results(task_id: str, service: TheService, caller: TheCaller) -> dict[str, Any]:
    """The result of a workflow."""
    result = _result(service, caller, task_id)
    return {"task_id": task_id, "status": result["status"], "result": result}


@router.get("/status/{task_id}")
def status(task_id: str, service: TheService, caller: TheCaller) -> dict[str, Any]:
    """How far a task is."""
    evaluation = _of_task(service, caller, task_id)
    return {"task_id": task_id, "status": STATUSES[evaluation.state], "error_message": evaluation.error}


@router.get("/results/{task_id}")
def results(task_id: str, service: TheService, caller: TheCaller) -> dict[str, Any]:
    """The result of a task."""
    return _result(service, caller, task_id)


@router.delete("/tasks/{task_id}")
def cancel(task_id: str, service: TheService, caller: TheCaller) -> dict[str, Any]:
    """Cancels a task, unless it has ended."""
    evaluation = service.store.service.evaluations.cancel(_of_task(service, caller, task_id).id)
    return {"task_id": task_id, "status": STATUSES[evaluation.state if evaluation else "cancelled"]}


@router.get("/queue/status")
def queue(service: TheService, _: TheCaller) -> dict[str, Any]:
    """The queue's lengths."""
    counts = service.store.service.evaluations.counts()
    totals = dict.fromkeys(STATUSES.values(), 0)
    for state, status in STATUSES.items():
        totals[status] += counts.get(state, 0)
    return totals


@router.get("/workers/status")
def workers(service: TheService, _: TheCaller) -> dict[str, Any]:
    """The workers."""
    return {"workers": {each.owner: each.model_dump() for each in service.store.service.workers.all()}}


def _request(task: Task) -> EvaluationRequest:
    try:
        return task.as_request()
    except UsageError as error:
        raise Refused(422, "invalid", str(error)) from None


def _result(service: Service, caller: Caller, task_id: str) -> dict[str, Any]:
    evaluation = _of_task(service, caller, task_id)
    return _response(task_id, evaluation, answer(service.store, evaluation))


def _of_task(service: Service, caller: Caller, task_id: str) -> StoredEvaluation:
    evaluation = service.store.service.evaluations.with_key(caller.name, key_of(task_id))
    if evaluation is None:
        raise Refused(404, "unknown", f"there is no task {task_id!r:.80}")
    return evaluation


def _response(task_id: str, evaluation: StoredEvaluation, body: dict[str, Any]) -> dict[str, Any]:
    """The fields of KernelGYM's EvaluationResponse. A failure of ours is `failed`, not a wrong kernel."""
    result = body["result"] or {}
    status = result.get("status")
    ours = body["infrastructure"]
    done = evaluation.state == "done" and not ours
    built = done and status not in BEFORE_IT_RUNS
    correct = done and result["correct"]
    return {
        "task_id": task_id,
        "status": "failed" if ours else STATUSES[evaluation.state],
        "compiled": built if done else None,
        "correctness": correct if done else None,
        "decoy_kernel": status in (Status.NO_CUSTOM_KERNEL, Status.CHEATING) if done else None,
        "reference_runtime": result.get("baseline_ms"),
        "kernel_runtime": result.get("candidate_ms"),
        "speedup": result.get("score") if done else None,
        "metadata": {"kernelproof": body},
        "error_message": body["error"] or (None if correct else result.get("reason")),
        "error_code": None if correct or status is None else str(status),
        "submitted_at": _moment(evaluation.submitted),
        "completed_at": _moment(evaluation.finished),
        "processing_time": None if not evaluation.finished else evaluation.finished - evaluation.submitted,
    }


def _moment(seconds: float | None) -> str | None:
    return (
        None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    )
