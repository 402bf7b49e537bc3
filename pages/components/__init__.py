"""Inline components: what Streamlit's own elements cannot do."""
