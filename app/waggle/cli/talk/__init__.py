"""Commands that ask the model: its answers to reserved questions, and a chat."""
