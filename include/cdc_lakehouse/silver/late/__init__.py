"""What comes behind its time: which keys are computed anew, and which events are refused."""
