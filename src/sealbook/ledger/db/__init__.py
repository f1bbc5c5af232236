"""The plumbing under the ledger: engine, dialects, bulk rows, types, migrations, roles."""
