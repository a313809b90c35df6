"""Permissions of the service accounts of Paas' capabilities, in the cluster or in their namespace (2.7)."""
