"""This computer: its limits, its energy, its sensors, and giving way when memory runs short."""
