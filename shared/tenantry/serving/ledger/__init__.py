"""The ledger of decisions: what functions wrote, because of what, in one SQLite file with a retention.

`record` is what an event says, `store` the file with its writer, `asked` the questions to it, `gaps` what is missing in it,
`entry` the HTTP entry that the Trigger sends to.  Functions do not import this package.
"""

NAME = "ledger"
"""The identity, the Service and the name that `tenantry serve` knows."""
LEDGER_VARIABLE = "TENANTRY_LEDGER"
"""Names the file."""
DEFAULT_FILE = "/var/lib/tenantry/ledger.db"
"""In a pod, where its volume is."""
