"""What each library of arrays does in its own way."""
