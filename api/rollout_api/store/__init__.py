"""What the gateway keeps, in SQL: tables, the way to the database, and the queries."""
