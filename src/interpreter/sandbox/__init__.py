"""The sandbox in which live sessions run: what they can reach, and what they are kept from."""
