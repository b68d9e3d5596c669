"""What the network costs, measured over loopback with TLS; ``python -m bench.network [SECTION]``."""
