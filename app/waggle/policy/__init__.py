"""A model that speaks and learns, in token ids: on torch or on MLX; its words, and its saved states."""
