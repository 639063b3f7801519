"""The forward pass, decoding and learning of a model in torch."""
