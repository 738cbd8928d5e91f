"""One file per way to move the bytes; each defines the constant TRANSPORT."""
