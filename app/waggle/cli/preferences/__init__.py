"""Commands that read and change settings."""
