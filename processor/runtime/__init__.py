"""Runs a job: starts workers, drives the protocol, restarts what fails."""
