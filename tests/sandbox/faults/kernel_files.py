"""Opens for writing the files that change the kernel or its own limits."""
# expect: ok

import pathlib

files = ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/hostname"]
files += ["/proc/sys/vm/drop_caches", "/proc/1/oom_score_adj", "/sys/kernel/mm/transparent_hugepage/enabled"]
files += [str(path) for path in pathlib.Path("/sys/fs/cgroup").glob("**/cgroup.procs")][:20]
got = []
for file in files:
    try:
        open(file, "r+b").close()
        got.append(file)
    except OSError as problem:
        print(problem)
try:
    pathlib.Path("/proc/self/oom_score_adj").write_text("-1000")
    got.append("oom_score_adj")
except OSError as problem:
    print(problem)
# A first process of our own user may be preferred for the OOM killer: that harms the job alone.
raise SystemExit(", ".join(file for file in got if file != "/proc/1/oom_score_adj") or 0)
