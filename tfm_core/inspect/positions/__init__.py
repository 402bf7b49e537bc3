"""What positions look like: tables, similarity, shuffles, and a race of the kinds."""
