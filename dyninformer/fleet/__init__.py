"""Many clusters as one: a factory for each, behind one informer and one lister per resource."""
