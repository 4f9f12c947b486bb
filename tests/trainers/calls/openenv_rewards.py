"""OpenEnv: the environment's server, and OpenEnv's own client."""

from __future__ import annotations

import socket
import threading

import uvicorn
from calls import given, tell
from openenv.core import GenericEnvClient

from kernelproof.trainers.openenv import app

asked = given()
with socket.create_server(("127.0.0.1", 0)) as listening:
    server = uvicorn.Server(uvicorn.Config(app(), log_level="warning"))
    serving = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    serving.start()
    with GenericEnvClient(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}").sync() as client:
        client.reset(problem=asked["problem"], max_turns=len(asked["answers"]))
        steps = [client.step({"answer": answer}) for answer in asked["answers"]]
        state = client.state()
    server.should_exit = True
    serving.join()
told = [{"reward": each.reward, "done": each.done, "observation": each.observation} for each in steps]
tell(steps=told, state=state)
