"""The evaluation: small data analysis tasks, done by the whole product with a real local model, and checked."""
