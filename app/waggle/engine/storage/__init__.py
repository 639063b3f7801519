"""What the engine stores: rounds, snapshots, history, and requests that outlive it."""
