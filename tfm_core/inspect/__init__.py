"""Looking inside a model: one folder a subject; arrays and tables out, no figures."""
