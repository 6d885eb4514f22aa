"""The ground floor: errors, data types and the device's capabilities. Imports nothing else of the package."""
