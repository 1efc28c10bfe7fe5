//! The queue on PostgreSQL: its statements, its locks, and connections that are cut.

mod cuts;
mod locks;
mod statements;
