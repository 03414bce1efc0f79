"""Rates and ratios, measured on this machine."""
