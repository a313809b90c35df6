"""What release-provisioning is: its units, and when it sweeps."""

from tenantry.model.descriptor import described_by

descriptor = described_by("release_provisioning", "5-59/10 * * * *")
