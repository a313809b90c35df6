"""What scope-binding is: its units, and when it sweeps."""

from tenantry.model.descriptor import described_by

descriptor = described_by("scope_binding", "7-59/10 * * * *")
