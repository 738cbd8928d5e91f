"""One file per protocol that a server may speak; each defines the constant PROTOCOL."""
