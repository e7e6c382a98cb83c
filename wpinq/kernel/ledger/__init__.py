"""The ledger: budgets, debits and answers in one durable, verified file."""
