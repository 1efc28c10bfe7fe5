//! The versions of the schema. Each engine has its own statements for the same list; a version
//! never changes once released.

use super::error::StoreError;

/// One step from a version of the schema to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) description: &'static str,
    pub(crate) sql: &'static str,
}

/// The version that this code works with.
pub(crate) const NEEDED_VERSION: i64 = 1;

/// Declares the steps. The folder of each engine has a file for each step, with the same name.
macro_rules! migrations {
    ($($version:literal, $description:literal, $file:literal;)+) => {
        /// The steps for PostgreSQL.
        pub(crate) const POSTGRES: &[Migration] = &[$(Migration {
            version: $version,
            description: $description,
            sql: include_str!(concat!("../../../migrations/postgres/", $file)),
        }),+];

        /// The steps for SQLite.
        pub(crate) const SQLITE: &[Migration] = &[$(Migration {
            version: $version,
            description: $description,
            sql: include_str!(concat!("../../../migrations/sqlite/", $file)),
        }),+];
    };
}

migrations! {
    1, "initial", "0001_initial.sql";
}

/// Refuses a schema of another version, older or newer.
pub(crate) fn check_version(found: i64) -> Result<(), StoreError> {
    if found == NEEDED_VERSION {
        Ok(())
    } else {
        Err(StoreError::Schema {
            found,
            needed: NEEDED_VERSION,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_engines_reach_the_needed_version_in_the_same_steps_without_gaps() {
        for (version, (postgres, sqlite)) in (1..).zip(POSTGRES.iter().zip(SQLITE)) {
            assert_eq!((postgres.version, sqlite.version), (version, version));
            assert_eq!(postgres.description, sqlite.description);
        }
        assert_eq!(POSTGRES.last().unwrap().version, NEEDED_VERSION);
        assert_eq!(POSTGRES.len(), SQLITE.len());
    }
}
