"""Lets people and programs ask a running job; speaks only to contracts/job_control."""
