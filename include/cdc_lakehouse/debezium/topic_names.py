"""What the name of a topic says of its connector and its table."""

from __future__ import annotations


def prefix_and_relation(topic: str) -> tuple[str, str]:
    """`shop.public.orders` -> the prefix `shop`, the table `public.orders`."""
    prefix, *relation = topic.rsplit(".", 2)
    return prefix, ".".join(relation)
