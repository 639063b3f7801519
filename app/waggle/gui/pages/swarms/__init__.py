"""The page Swarms: joining, creating and inviting; the playground and the race."""
