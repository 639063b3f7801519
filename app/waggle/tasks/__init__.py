"""What is asked and how it is judged: the charter, questions, and the processes that see what strangers wrote."""
