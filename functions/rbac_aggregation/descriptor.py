"""What rbac-aggregation is: its units, and when it sweeps."""

from tenantry.model.descriptor import described_by

descriptor = described_by("rbac_aggregation", "9-59/10 * * * *")
