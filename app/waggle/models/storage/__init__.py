"""Models on disk: checkpoints, the training journal, hub downloads and exports."""
