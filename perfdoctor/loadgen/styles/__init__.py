"""One file per tool whose table can be recomputed from our instants; each defines the constant STYLE."""
