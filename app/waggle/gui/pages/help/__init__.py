"""The page Help: a glossary, a self-test, the log, and a report without names."""
