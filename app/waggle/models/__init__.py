"""A model that speaks and learns, in token ids: on torch or on MLX; its words, and its saved states."""

import os

# Linux gives memory in pages of 4 KiB unless it is asked for larger ones: torch asks, for tensors from 2 MiB, if this is set
# before it makes the first one.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
# torch compiles some products of a card when it first needs them, where Triton is installed; where no compiler is, it raises.
os.environ.setdefault("TORCH_DISABLE_NATIVE_JIT", "1")
