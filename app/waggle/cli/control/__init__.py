"""Commands that steer and watch a running engine."""
