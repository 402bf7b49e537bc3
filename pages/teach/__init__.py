"""Class: a start page for pupils, everybody's runs and answers of a lesson, and a reset."""
