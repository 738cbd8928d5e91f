"""One file per source of prompts; each defines the constant SOURCE."""
