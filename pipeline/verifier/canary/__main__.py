"""The canary's process. `kernelproof.verifier.devices.gpu_health` starts it and says what it is asked."""

from __future__ import annotations

import gc
import os
import signal
import sys

from kernelproof.verifier.devices.gpu_health import GO, HEALTHY, REACH, TIME_LIMIT_S, UP


def main() -> int:
    """Answers every line, until `go`. Returns 0 when all was right, or the input ends; else 1."""
    if cores := sys.argv[2:]:
        os.sched_setaffinity(0, map(int, cores))
    gc.disable()  # importing makes objects by the hundred thousand, and none of them is garbage
    import torch

    from kernelproof.verifier.canary.known_results import PROBES, examine, prepare, reach

    gc.freeze()
    gc.enable()
    torch.set_num_threads(min(torch.get_num_threads(), 4))
    prepare()
    print(UP, flush=True)
    device, trouble = torch.device(sys.argv[1]), None
    for line in sys.stdin:  # this ends when the process that started the canary has ended
        signal.alarm(round(TIME_LIMIT_S) + 5)  # a hung canary ends even if the process that asked was killed
        trouble = examine(device, (reach,) if line.strip() == REACH else PROBES)
        print(trouble or HEALTHY, flush=True)
        signal.alarm(0)
        if trouble or line.strip() == GO:
            break
        if device.type == "cuda":
            torch.cuda.empty_cache()  # others want it until we are asked again
    return 1 if trouble else 0


if __name__ == "__main__":
    sys.exit(main())
