"""Write what was folded: tombstones, history, silver, in this order."""
