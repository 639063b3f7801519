"""Strangers who share: records, the directory, and trust."""
