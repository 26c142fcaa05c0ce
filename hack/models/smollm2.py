"""Turns the quantised SmolLM2-135M-Instruct (GGUF, Apache-2.0) into a folder that vLLM serves.

Usage: smollm2.py FOLDER_WITH_GGUF OUT. Runs with vLLM's environment.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils.quantization_config import GgufConfig


def convert(source: Path, out: Path) -> None:
    """Write the model found in `source` to `out`, in bfloat16, with its chat template."""
    (weights,) = source.glob("*.gguf")
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=weights.name)
    # The GGUF reader of transformers loses this model's split between digits.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    model = AutoModelForCausalLM.from_pretrained(
        source,
        gguf_file=weights.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
