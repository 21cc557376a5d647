"""Languages that blocks can be written in, beside those that every session needs. `runtimes/built_in.py` lists them."""
