"""Devices, for orchestrator and referee alike: finding, locking, health, quarantine. No torch."""
