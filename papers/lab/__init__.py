"""What all papers share."""
