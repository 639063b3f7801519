"""What is asked and how it is judged: the charter, questions, and the process that judges text from strangers."""
