"""The engine: a headless program that contributes. Commands come in and events go out, one JSON line each."""
