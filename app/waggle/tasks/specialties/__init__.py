"""The kinds of questions a charter may name, and what the audit found out about each."""
