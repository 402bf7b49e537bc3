"""What a link holds: parameters, the view of a page, and the configuration."""
