"""Scripts written for 0.4.3, run on 0.4.3 and on ours: `make compat`."""
