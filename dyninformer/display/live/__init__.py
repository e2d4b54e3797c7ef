"""What follows a cluster on the screen: a table, a table to sort and filter, a plot."""
