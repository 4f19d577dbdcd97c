"""loadstone: a load generator for LLM inference servers whose numbers can be believed."""

__version__ = "0.1.0"
