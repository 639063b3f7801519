"""Sharing strategies that need the log-prob of a completion at its sender, one a file.

Records of a live swarm do not carry it, because nobody could check what a sender claims. The laboratory's simulated swarm has
it. The window does not offer these strategies, but the settings file and `--set` accept them: the docstring of each says what it
does without the sender's log-prob.
"""
