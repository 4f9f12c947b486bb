"""TRL's GRPOTrainer: one step with a small model that was not trained, then the rewards of given answers."""

from __future__ import annotations

from calls import given, tell, tokenizer
from datasets import Dataset
from transformers import LlamaConfig, LlamaForCausalLM
from trl import GRPOConfig, GRPOTrainer

from kernelproof.trainers.trl import kernel_reward

asked, words = given(), tokenizer()
sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
model = LlamaForCausalLM(LlamaConfig(vocab_size=len(words), pad_token_id=words.pad_token_id, **sizes))
settings = GRPOConfig(
    output_dir="trl-output",
    max_steps=1,
    per_device_train_batch_size=2,
    num_generations=2,
    max_completion_length=4,
    use_cpu=True,
    bf16=False,
    report_to=[],
    save_strategy="no",
    logging_steps=1,
)
rows = Dataset.from_list([{"prompt": "Write a kernel.", "problem": asked["problem"]}] * 2)
trainer = GRPOTrainer(
    model, reward_funcs=kernel_reward, args=settings, train_dataset=rows, processing_class=words
)
trainer.train()
trained = next(row for row in trainer.state.log_history if "reward" in row)
answers = asked["answers"]
inputs = [{"prompt": "", "problem": asked["problem"]} for _ in answers]
found = trainer._calculate_rewards(inputs, [""] * len(answers), answers, [[0]] * len(answers))
tell(
    rewards=found[:, 0].tolist(),
    trained={"step": trained["step"], "reward": trained["reward"]},
    busy=trainer._pending_extra_logs["busy_machine"],
)
