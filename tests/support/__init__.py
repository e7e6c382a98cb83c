"""Random plans, random datasets and the checks that several test files share."""
