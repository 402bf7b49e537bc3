"""Tasks: text generated from seeds, pictures from files; vocabularies, splits, augmentation."""
