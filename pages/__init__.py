"""Streamlit pages: thin scripts that read state, show controls, call the core and explain."""
