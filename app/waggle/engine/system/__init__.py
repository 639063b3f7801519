"""This computer: resource limits, energy, sensors, and backing off when memory runs short."""
