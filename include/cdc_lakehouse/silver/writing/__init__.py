"""Write what was folded: tombstones, and silver by MERGE or by place."""
