"""What counters of finished lives say, on the host: statistics of pairs, and worth against what it should estimate."""
