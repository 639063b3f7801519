"""Text as it is set: questions with fractions and grids, highlighted text, and large sentences."""
