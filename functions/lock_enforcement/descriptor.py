"""What lock-enforcement is: its units, and when it sweeps."""

from tenantry.model.descriptor import described_by

descriptor = described_by("lock_enforcement", "1-59/5 * * * *")
