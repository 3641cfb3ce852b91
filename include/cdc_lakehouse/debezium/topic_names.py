"""Connector and table in the name of a topic."""

from __future__ import annotations


def prefix_and_relation(topic: str) -> tuple[str, str]:
    """`shop.public.orders` -> the prefix `shop`, the table `public.orders`."""
    prefix, *relation = topic.rsplit(".", 2)
    return prefix, ".".join(relation)
