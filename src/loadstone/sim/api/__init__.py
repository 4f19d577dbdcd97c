"""The OpenAI API as JSON, with vLLM's additions: what requests ask for, and how answers are spelt. Pure; no sockets."""
