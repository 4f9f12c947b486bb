"""The server of transformers, which nobody here wrote, with a tiny model of random weights.

`start` runs it in a process of its own: `python -m tests.realserver FOLDER PORT` makes the model in FOLDER
and then is `transformers serve`. Nothing comes from the network.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONTEXT = 16_384
"""Tokens that the model's positions reach; the server does not look whether a prompt fits."""
DEFAULT_MOST = 1024
"""Tokens after which the server ends an answer, where the request says nothing."""


@dataclass
class RealServer:
    """The running server."""

    url: str
    """Its base URL."""
    model: str
    """The only model it has: a path."""


@contextmanager
def start(folder: Path, seconds: float = 120.0) -> Iterator[RealServer]:
    """Runs the server until the block ends. `seconds`: most until it answers; importing torch takes a while.

    Fails where the server's package is missing, or it ends before it answers.
    """
    wanted = ("transformers", "uvicorn", "fastapi", "accelerate")
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    if missing:
        raise AssertionError(f"{', '.join(missing)} not installed: run scripts/install.sh test")
    model, log = folder / "tiny-random", folder / "server.log"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    offline = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_UPDATE_CHECK": "1", "HF_HOME": str(folder / "home")}
    environment = {**os.environ, **offline, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "tests.realserver", str(model), str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=ROOT, env=environment)
    try:
        deadline = time.monotonic() + seconds
        while not _answers(port):
            assert process.poll() is None, f"transformers serve ended:\n{log.read_text()[-4000:]}"
            assert time.monotonic() < deadline, f"no answer after {seconds:g} s:\n{log.read_text()[-4000:]}"
            time.sleep(0.1)
        yield RealServer(f"http://127.0.0.1:{port}/v1", str(model))
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
        return bool(reply.status == 200)
    return False


def make_model(folder: Path) -> None:
    """A GPT-2 of one layer with a vocabulary learnt from our README. Its answers are printable nonsense that
    never ends by itself.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    end = "<end>"
    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=512, special_tokens=[end], initial_alphabet=alphabet, show_progress=False
    )
    words.train_from_iterator([(ROOT / "README.md").read_text()], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token=end, pad_token=end)
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant:{% endif %}"
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"n_positions": CONTEXT, "n_embd": 32, "n_layer": 1, "n_head": 2}
    config = GPT2Config(
        vocab_size=len(tokenizer), bos_token_id=0, eos_token_id=0, initializer_range=0.4, **sizes
    )
    model = GPT2LMHeadModel(config)
    never = [number for number in range(len(tokenizer)) if not _is_word(tokenizer.decode([number]))]
    model.generation_config = GenerationConfig(
        eos_token_id=0, pad_token_id=0, suppress_tokens=never, repetition_penalty=1.3
    )
    model.save_pretrained(folder)


def _is_word(text: str) -> bool:
    return text.strip().isascii() and text.strip().isalnum()


if __name__ == "__main__":
    from transformers.cli.transformers import main

    made, at = Path(sys.argv[1]), sys.argv[2]
    make_model(made)
    sys.argv = ["transformers", "serve", str(made), "--host", "127.0.0.1", "--port", at, "--device", "cpu"]
    main()
