"""Code that both backends share: configuration, weight files, packing, decoding and adapters."""
