"""Visitors: cookies, logins, and what each visitor may do."""
