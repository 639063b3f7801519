"""Run small models in one thread: it is fastest, and equal results need equal threads."""

import torch

torch.set_num_threads(1)
