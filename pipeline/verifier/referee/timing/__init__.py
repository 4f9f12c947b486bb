"""How long it takes: rounds of both sides, two clocks, and what they say."""
