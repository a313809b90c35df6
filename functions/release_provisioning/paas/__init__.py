"""Hand-over of Paas' capabilities: elements in the list generators of ApplicationSets (2.14)."""
