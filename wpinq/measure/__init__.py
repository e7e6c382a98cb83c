"""What is asked and what comes back: measurements, their bills, answers and the laws of their noise. Pure data."""
