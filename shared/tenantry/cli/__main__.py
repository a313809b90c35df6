"""``python -m tenantry.cli``."""

from tenantry.cli import main

main()
