"""What release-provisioning wants for one release name: pure functions."""
