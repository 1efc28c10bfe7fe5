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
pub(crate) const NEEDED_VERSION: i64 = 18;

/// Declares the steps. The folder of each engine has a file for each step, with the same name.
macro_rules! migrations {
    ($($version:literal, $description:literal, $file:literal;)+) => {
        /// The steps for PostgreSQL.
        pub(crate) const POSTGRES: &[Migration] = &[$(Migration {
            version: $version,
            description: $description,
            sql: include_str!(concat!("../../migrations/postgres/", $file)),
        }),+];

        /// The steps for SQLite.
        pub(crate) const SQLITE: &[Migration] = &[$(Migration {
            version: $version,
            description: $description,
            sql: include_str!(concat!("../../migrations/sqlite/", $file)),
        }),+];
    };
}

migrations! {
    1, "sessions, runs, agents, keys", "0001_sessions_runs_agents_keys.sql";
    2, "history windows and subagents", "0002_history_windows_and_subagents.sql";
    3, "queue, threads, webhooks, retention", "0003_queue_threads_webhooks.sql";
    4, "limits", "0004_limits.sql";
    5, "known costs and answering models", "0005_known_costs_and_answering_models.sql";
    6, "webhook receivers", "0006_webhook_receivers.sql";
    7, "removals beside commits", "0007_removals_beside_commits.sql";
    8, "run filters", "0008_run_filters.sql";
    9, "due deliveries", "0009_due_deliveries.sql";
    10, "due deliveries of tenants", "0010_due_deliveries_of_tenants.sql";
    11, "rows in place of locks", "0011_rows_in_place_of_locks.sql";
    12, "workspaces", "0012_workspaces.sql";
    13, "content totals and objects", "0013_content_totals_and_objects.sql";
    14, "commands for workers", "0014_commands_for_workers.sql";
    15, "bytes", "0015_bytes.sql";
    16, "contexts without agents", "0016_contexts_without_agents.sql";
    17, "answered runs", "0017_answered_runs.sql";
    18, "write checks", "0018_write_checks.sql";
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
