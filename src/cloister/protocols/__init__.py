"""One package per published system. Each reads as its paper does: threat model, messages, party, coordinator."""
