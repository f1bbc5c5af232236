"""Run by Alembic: migrate on the connection, and in the transaction, that the caller began."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, transactional_ddl=False)
context.run_migrations()
