"""What both backends share: configuration, weight files, packing, decoding and adapters."""
