"""What everything in a running engine shares: the pause gate, live settings, events, the model."""
