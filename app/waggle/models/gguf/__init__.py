"""GGUF files (https://github.com/ggml-org/ggml, docs/gguf.md) opened for training: converted to a transformers folder, once."""
