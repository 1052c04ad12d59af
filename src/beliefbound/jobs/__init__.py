"""From files to folders: models, logs and policies in, certificates out, and the same again to check them."""
