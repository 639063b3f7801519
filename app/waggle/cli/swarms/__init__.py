"""Commands about swarms: list, join, create, invite, leave."""
