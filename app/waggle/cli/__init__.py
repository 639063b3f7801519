"""The command line: parses what was asked for and starts one command, each in a file of its own."""
