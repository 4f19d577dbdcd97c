"""Measurements of loadstone itself, against bars, as ratios in one run: `python -m bench`."""
