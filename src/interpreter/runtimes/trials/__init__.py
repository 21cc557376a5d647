"""Running a block where nothing lasts: in a view of the file system, with the network closed."""
