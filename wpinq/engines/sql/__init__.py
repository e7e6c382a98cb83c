"""Terms and blocks as SQL text: dialects, the writer, sums that keep their bits, and the script of a plan."""
