"""PaasConfigs: which one counts, what is wrong with it, and the quotas that all Paas of a capability share."""
