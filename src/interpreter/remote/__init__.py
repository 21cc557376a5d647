"""Sessions on other machines: over ssh, with a keeper there, or on the kernels of a Jupyter server."""
