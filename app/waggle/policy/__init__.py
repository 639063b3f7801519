"""A model that speaks and learns, in token ids: torch here, its words, and its saved states."""
