"""rbac-aggregation: the people of a registration namespace get the Roles of its releases."""

NAME = "rbac-aggregation"
