"""lock-enforcement: deployed Helm releases stay as Helm left them."""

NAME = "lock-enforcement"
