"""Colours, fonts, style sheet, focus and motion."""
