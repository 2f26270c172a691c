"""What staff do in the admin, for programs of the site: over Django REST framework."""
