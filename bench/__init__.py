"""Long studies and marks; ``python -m bench.<name>`` from the repository root runs one."""
