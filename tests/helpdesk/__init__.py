"""Another site: a help desk with an API, in a Django project of its own.

It describes itself by drf-spectacular, as sites do that nobody here wrote.
"""
