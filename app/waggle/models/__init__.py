"""Policies: language models that sample and learn, on torch or on MLX, with their tokenizers and checkpoints."""

import os

# Transparent huge pages on Linux: torch asks for them, for tensors from 2 MiB, if this is set before its first allocation.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
# If Triton is installed, torch compiles some kernels for a GPU at their first use, which fails without a C compiler.
os.environ.setdefault("TORCH_DISABLE_NATIVE_JIT", "1")
