"""The evaluation: small tasks of a data analyst, done by the whole product with a real local model, and checked."""
