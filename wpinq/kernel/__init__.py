"""The trusted core: privacy cost, ledger, noise, prepared measurements, releases, sessions."""
