"""What consumers get, by Spark, Arrow and SQL (R-CON)."""
