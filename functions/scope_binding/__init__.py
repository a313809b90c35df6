"""scope-binding: where operators may act, and the rights that follow."""

NAME = "scope-binding"
