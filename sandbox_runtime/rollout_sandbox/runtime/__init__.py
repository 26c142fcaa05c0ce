"""The relocatable Python runtime that is mounted read-only into every sandbox."""

from .build import ensure_runtime, runtime_key

__all__ = ["ensure_runtime", "runtime_key"]
