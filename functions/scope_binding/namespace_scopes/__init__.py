"""NamespaceScopes: member namespaces of operators, the list that the operators read, and their rights there."""
