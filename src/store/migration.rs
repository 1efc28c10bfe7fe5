//! The versions of the schema. Each engine has its own statements for the same list. A released
//! version never changes.

use super::error::StoreError;

/// One step from a version of the schema to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) description: &'static str,
    pub(crate) sql: &'static str,
}

/// The version that this code works with.
pub(crate) const NEEDED_VERSION: i64 = 10;

/// The steps for PostgreSQL.
pub(crate) const POSTGRES: [Migration; 10] = [
    Migration {
        version: 1,
        description: "sessions, runs, agents, keys",
        sql: include_str!("../../migrations/postgres/0001_sessions_runs_agents_keys.sql"),
    },
    Migration {
        version: 2,
        description: "history windows and subagents",
        sql: include_str!("../../migrations/postgres/0002_history_windows_and_subagents.sql"),
    },
    Migration {
        version: 3,
        description: "queue, threads, webhooks, retention",
        sql: include_str!("../../migrations/postgres/0003_queue_threads_webhooks.sql"),
    },
    Migration {
        version: 4,
        description: "limits",
        sql: include_str!("../../migrations/postgres/0004_limits.sql"),
    },
    Migration {
        version: 5,
        description: "known costs and answering models",
        sql: include_str!("../../migrations/postgres/0005_known_costs_and_answering_models.sql"),
    },
    Migration {
        version: 6,
        description: "webhook receivers",
        sql: include_str!("../../migrations/postgres/0006_webhook_receivers.sql"),
    },
    Migration {
        version: 7,
        description: "removals beside commits",
        sql: include_str!("../../migrations/postgres/0007_removals_beside_commits.sql"),
    },
    Migration {
        version: 8,
        description: "run filters",
        sql: include_str!("../../migrations/postgres/0008_run_filters.sql"),
    },
    Migration {
        version: 9,
        description: "due deliveries",
        sql: include_str!("../../migrations/postgres/0009_due_deliveries.sql"),
    },
    Migration {
        version: 10,
        description: "due deliveries of tenants",
        sql: include_str!("../../migrations/postgres/0010_due_deliveries_of_tenants.sql"),
    },
];

/// The steps for SQLite.
pub(crate) const SQLITE: [Migration; 10] = [
    Migration {
        version: 1,
        description: "sessions, runs, agents, keys",
        sql: include_str!("../../migrations/sqlite/0001_sessions_runs_agents_keys.sql"),
    },
    Migration {
        version: 2,
        description: "history windows and subagents",
        sql: include_str!("../../migrations/sqlite/0002_history_windows_and_subagents.sql"),
    },
    Migration {
        version: 3,
        description: "queue, threads, webhooks, retention",
        sql: include_str!("../../migrations/sqlite/0003_queue_threads_webhooks.sql"),
    },
    Migration {
        version: 4,
        description: "limits",
        sql: include_str!("../../migrations/sqlite/0004_limits.sql"),
    },
    Migration {
        version: 5,
        description: "known costs and answering models",
        sql: include_str!("../../migrations/sqlite/0005_known_costs_and_answering_models.sql"),
    },
    Migration {
        version: 6,
        description: "webhook receivers",
        sql: include_str!("../../migrations/sqlite/0006_webhook_receivers.sql"),
    },
    Migration {
        version: 7,
        description: "removals beside commits",
        sql: include_str!("../../migrations/sqlite/0007_removals_beside_commits.sql"),
    },
    Migration {
        version: 8,
        description: "run filters",
        sql: include_str!("../../migrations/sqlite/0008_run_filters.sql"),
    },
    Migration {
        version: 9,
        description: "due deliveries",
        sql: include_str!("../../migrations/sqlite/0009_due_deliveries.sql"),
    },
    Migration {
        version: 10,
        description: "due deliveries of tenants",
        sql: include_str!("../../migrations/sqlite/0010_due_deliveries_of_tenants.sql"),
    },
];

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
        for (version, (postgres, sqlite)) in (1..).zip(POSTGRES.iter().zip(&SQLITE)) {
            assert_eq!((postgres.version, sqlite.version), (version, version));
            assert_eq!(postgres.description, sqlite.description);
        }
        assert_eq!(POSTGRES.last().unwrap().version, NEEDED_VERSION);
    }
}
