"""The service: analysts who are not trusted ask over HTTP, under budgets of their own."""
