"""What an operator runs: launcher, status, doctor, backup, verdict, page, demonstration."""
