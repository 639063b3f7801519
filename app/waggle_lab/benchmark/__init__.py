"""The same round in Waggle and in other trainers, timed."""
