"""The page Swarms: joining, creating and inviting; models, the playground and the race."""
