"""Train it well."""
