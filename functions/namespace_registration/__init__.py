"""namespace-registration: projects, their registration namespaces and hardening."""

NAME = "namespace-registration"
