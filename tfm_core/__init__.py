"""The engine: configs, layers, models, tasks, training, runs. It never imports streamlit."""
