"""Crashes enumerated: every state that storage can be left in, and what the next run makes of it."""
