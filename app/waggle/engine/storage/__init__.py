"""What the engine writes down: rounds, snapshots, history, requests that outlive it."""
