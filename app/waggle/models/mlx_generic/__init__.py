"""Every model of mlx-lm, for Apple Silicon: slower than the fast path in `models/mlx`, under the same contract."""
