"""A server with a known pace, and what this machine's load generator makes of it."""
