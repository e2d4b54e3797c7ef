"""What kube-apiserver says: requests in, representations out; no sockets, no threads."""
