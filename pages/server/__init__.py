"""What the server does around the pages: middleware, static files, published runs, warm-up."""
