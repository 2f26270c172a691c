"""What staff and operators find out: try a definition, check a site, look at all of it.

The pages of the admin and the commands show what these functions return.
"""
