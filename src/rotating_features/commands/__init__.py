"""What each command does: parse, call, print."""
