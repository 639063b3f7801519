"""Commands about the rounds that were played: as numbers, by day, by run, compared and played again."""
