"""A run as a folder of plain files that any web server hands out while it trains."""
