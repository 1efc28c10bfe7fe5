//! Problems of JSON that does not fit: they name the field, and say what it may be.

mod names;
mod types;
