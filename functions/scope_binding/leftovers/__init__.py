"""What stands although whoever declared it is gone, because its deletion was refused."""
