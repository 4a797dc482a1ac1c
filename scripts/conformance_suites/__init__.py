"""The suites of scripts/conformance, by kind; each module has a table SUITES: name → function(context)."""
