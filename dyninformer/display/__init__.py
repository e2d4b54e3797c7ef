"""What people are shown of cluster data: safe text, tables, differences."""
