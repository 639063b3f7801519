"""The steps of a round in words."""

TITLES = {"draw": "Pick", "answer": "Answer", "judge": "Judge", "share": "Share", "gather": "Gather", "learn": "Learn"}
