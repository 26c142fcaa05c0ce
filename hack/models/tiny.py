"""Makes a small model: random weights, a real byte-level BPE tokenizer, a tool-calling template.

Nothing is downloaded: the tokenizer is trained on the standard library of the running Python, and
weights are drawn from a seed, so the same Python release and seed give the same files. Runs with
vLLM's environment. `--template qwen3` drops the reasoning of earlier turns from the prompt, as
that family does, so a later prompt does not extend an earlier one; with `chatml` it always does.
"""

from __future__ import annotations

import argparse
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.trainers import BpeTrainer
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

CORPUS_BYTES = 3_000_000
MAX_POSITIONS = 32_768
LOGIT_SCALE = 2.0  # standard deviation of the logits: an entropy of about 6.3 nats
# The names of Qwen3's added tokens, and whether each is special (left out of decoded text).
ADDED_TOKENS = {
    "<|endoftext|>": True,
    "<|im_start|>": True,
    "<|im_end|>": True,
    "<tool_call>": False,
    "</tool_call>": False,
    "<tool_response>": False,
    "</tool_response>": False,
    "<think>": False,
    "</think>": False,
}
# How Qwen2 and Qwen3 cut text before BPE.
QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_NOT_CORPUS = {"site-packages", "test", "tests", "idlelib", "lib2to3", "pydoc_data"}


@dataclass(frozen=True)
class Shape:
    """The sizes of a model; head_dim is a multiple of 32, which vLLM's CPU attention wants."""

    family: str
    hidden: int = 128
    intermediate: int = 256
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    vocabulary: int = 4096


PRESETS = {
    "tiny-qwen3": Shape("qwen3"),
    "tiny-llama": Shape("llama"),
    "qwen3-100m": Shape(
        "qwen3", hidden=768, intermediate=2304, layers=14, heads=12, kv_heads=4, head_dim=64
    ),
}


def corpus() -> Iterator[str]:
    """Yield the first `CORPUS_BYTES` of the standard library, English prose first."""
    root = Path(sysconfig.get_paths()["stdlib"])
    code = sorted(path for path in root.rglob("*.py") if not _NOT_CORPUS & set(path.parts))
    used = 0
    for path in [root / "pydoc_data" / "topics.py", *code]:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        yield text
        used += len(text)
        if used >= CORPUS_BYTES:
            return


def make_tokenizer(vocabulary: int, template: str) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer of exactly `vocabulary` tokens, the added ones last."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=False, fuse_unk=False))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_SPLIT), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=vocabulary - len(ADDED_TOKENS),
        min_frequency=2,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.add_tokens(
        [
            AddedToken(text, special=special, normalized=False)
            for text, special in ADDED_TOKENS.items()
        ]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        model_max_length=MAX_POSITIONS,
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = template
    return fast


def make_model(shape: Shape, tokenizer: PreTrainedTokenizerFast, seed: int) -> PreTrainedModel:
    """Build a model whose weights depend on the seed only, not on the library's initialiser."""
    config_type, model_type = {
        "qwen3": (Qwen3Config, Qwen3ForCausalLM),
        "llama": (LlamaConfig, LlamaForCausalLM),
    }[shape.family]
    model = model_type(
        config_type(
            vocab_size=shape.vocabulary,
            hidden_size=shape.hidden,
            intermediate_size=shape.intermediate,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            max_position_embeddings=MAX_POSITIONS,
            tie_word_embeddings=False,
            rms_norm_eps=1e-6,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    ).to(torch.float32)
    draw_weights(model, seed)
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, tokenizer.pad_token_id]
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model


@torch.no_grad()
def draw_weights(model: PreTrainedModel, seed: int) -> None:
    """Draw all matrices anew, so that logits of any input are about N(0, LOGIT_SCALE^2)."""
    generator = torch.Generator().manual_seed(seed)
    for name, weights in sorted(model.named_parameters()):
        if weights.ndim >= 2:
            deviation = 1.0 if "embed_tokens" in name else weights.shape[1] ** -0.5
            weights.copy_(torch.randn(weights.shape, generator=generator) * deviation)
    model.lm_head.weight.mul_(LOGIT_SCALE)


def main() -> None:
    """Write one preset to the folder OUT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--preset", choices=sorted(PRESETS), default="tiny-qwen3")
    parser.add_argument("--template", choices=["qwen3", "chatml"], default="qwen3")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    shape = PRESETS[options.preset]
    template = Path(__file__).with_name(f"{options.template}.jinja").read_text(encoding="utf-8")
    tokenizer = make_tokenizer(shape.vocabulary, template)
    make_model(shape, tokenizer, options.seed).save_pretrained(options.out)
    tokenizer.save_pretrained(options.out)


if __name__ == "__main__":
    main()
