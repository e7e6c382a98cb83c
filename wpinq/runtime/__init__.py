"""Progress bars, signals and optional imports."""
