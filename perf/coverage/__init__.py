"""How often the intervals cover what they say they cover, and how often the gate and the night rule are wrong: by simulation."""
