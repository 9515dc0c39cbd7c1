"""The commands of ``processor``, one file a noun; whatever is heavy is imported when a command runs."""
