"""The settings of a configuration: its fields, drafts and controls, and the choice of a model."""
