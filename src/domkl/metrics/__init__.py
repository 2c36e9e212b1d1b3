"""Error, consensus violation, regret and intervals over trials."""
