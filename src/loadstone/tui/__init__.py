"""What a person sees while a run lasts. Reads the board; can never slow the load."""
