"""What the server does around the pages: middleware, static files, recorded runs alone, warm-up."""
