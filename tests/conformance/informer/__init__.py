"""What dyninformer promises (docs/semantics.md, S1-S34), on both servers."""
