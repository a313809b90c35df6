"""What namespace-registration is: its units, and when it sweeps."""

from tenantry.model.descriptor import described_by

descriptor = described_by("namespace_registration", "3-59/10 * * * *")
