"""Every causal language model of transformers: slower than the fast path in `models/torch`, under the same contract."""
