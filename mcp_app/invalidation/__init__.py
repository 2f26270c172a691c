"""Change rows, the check that finds new ones, and the rows of live workers."""
