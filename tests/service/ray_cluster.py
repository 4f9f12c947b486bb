"""A real Ray cluster of three nodes, in a process of its own: `python -m tests.service.ray_cluster`.

It prints its address. A line on its input kills a node that has a worker, as a power cut does. When its input
ends, so does the cluster.
"""

from __future__ import annotations

import sys
from typing import Any

import psutil

NODE = {
    "num_cpus": 2,
    "num_gpus": 0,
    "object_store_memory": 80 * 2**20,
    "include_dashboard": False,
}


def main() -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=dict(NODE))
    try:
        nodes = [cluster.add_node(**NODE) for _ in range(2)]
        print(cluster.address, flush=True)
        for _ in sys.stdin:
            victim = next(node for node in nodes if node in cluster.worker_nodes and has_worker(node))
            for process in tree(victim):
                process.kill()
            cluster.remove_node(victim, allow_graceful=False)
            print("killed", flush=True)
    finally:
        cluster.shutdown()


def tree(node: Any) -> list[psutil.Process]:
    """The processes of a node, the uppermost first: none of them sees that another one ends."""
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    return [raylet, *raylet.children(recursive=True)]


def has_worker(node: Any) -> bool:
    """Whether one of our workers runs on a node."""
    return any("--until-input-ends" in process.cmdline() for process in tree(node))


if __name__ == "__main__":
    main()
