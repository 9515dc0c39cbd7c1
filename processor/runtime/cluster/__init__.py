"""Workers on several machines: those that come by themselves, and those that Ray places."""
