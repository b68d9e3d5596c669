"""What the engineers run on the source tree itself. Not installed."""
