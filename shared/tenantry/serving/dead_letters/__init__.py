"""Where events end that no function could handle: a small store of keys and reasons, in one ConfigMap of bounded size.

`letter` is one dead letter, `book` a bounded number of them, `store` the ConfigMap that keeps them with its writer, `entry` the
HTTP entry that the brokers send to.  Functions do not import this package.
"""

NAME = "dead-letters"
"""The identity, the Service and the name that `tenantry serve` knows."""
