"""What keeps the runs safe on a disk: atomic files, locks, the quota, the trash, cleaning up."""
