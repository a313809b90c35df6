"""What ``tenantry status``, ``tree`` and ``map`` have in common: reading a cluster once, drawing, and following changes."""
