"""Titles of the steps of a round."""

TITLES = {"draw": "Pick", "answer": "Answer", "judge": "Judge", "share": "Share", "gather": "Gather", "learn": "Learn"}
