"""How staff and operators try a definition, check a site, and look at all of it.

The pages of the admin and the commands show what these functions return.
"""
