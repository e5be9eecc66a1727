"""What people read: result files and terminal tables."""
