"""The full-screen view of `waggle top`, by textual.

What peers and files say goes into `Content` and rich's `Text`, which show it as it is: never into a string, which textual would
read as markup.
"""
