"""Worker processes of the service: data, releases and planning."""
