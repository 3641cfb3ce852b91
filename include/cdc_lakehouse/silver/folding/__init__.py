"""Fold the events of keys to one change each: order, places, what a row brings along."""
