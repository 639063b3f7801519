"""Small models are fastest in one thread, and equal numbers want equal threads."""

import torch

torch.set_num_threads(1)
