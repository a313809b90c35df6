"""A live cluster with changes laid on top: what functions read there is as if the changes had been made; nothing is written."""
