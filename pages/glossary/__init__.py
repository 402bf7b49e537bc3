"""Glossary."""
