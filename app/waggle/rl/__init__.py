"""The ideas, pure: groups of rewards, advantages, objectives, noise. No clock, no disk, no network, no torch."""
