"""namespace-registration: projects, their registration namespaces and hardening."""
