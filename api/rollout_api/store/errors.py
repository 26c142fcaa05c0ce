"""Why the database can not be used.

StoreError                    it can not be used at all
├── DatabaseInUseError        another gateway has it
├── SchemaVersionError        another version of the gateway wrote it
└── DatabaseUnavailableError  it does not take writes
"""


class StoreError(Exception):
    """The database can not be used; the message says what to do."""


class DatabaseInUseError(StoreError):
    """Another gateway has the database open."""


class SchemaVersionError(StoreError):
    """The database was written by another version of the gateway."""


class DatabaseUnavailableError(StoreError):
    """The database does not take writes, for example because the disk is full."""
