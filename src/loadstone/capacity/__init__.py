"""Capacity planning: which devices, how many and with which flags a load needs to keep its objectives."""
