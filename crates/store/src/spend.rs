//! Limits of spending as a trait: runs reserve an amount before they spend it, and the transaction
//! that ends a run settles what it has spent.
//!
//! A limit has a row with the amounts that are spent and reserved. A reservation is never above
//! what is left, so the two together never pass the limit, however many processes reserve at once.
//! A reservation expires unless it is renewed: its process may be gone. If its run ends after all,
//! what it has spent counts nevertheless.

use std::fmt;

use async_trait::async_trait;

use super::error::StoreError;
use agent::record::NewDelivery;
use values::clock::Timestamp;
use values::ids::RunId;
use values::limits::SpendLimit;
use values::tenant::TenantId;
use values::usage::Cost;

/// What a run asks to reserve, of each of its limits.
#[derive(Debug, Clone)]
pub struct SpendRequest {
    /// The tenant of the run.
    pub tenant: TenantId,
    /// The run.
    pub run_id: RunId,
    /// The limits that count the run; at least one.
    pub limits: Vec<SpendLimit>,
    /// The least that the run must have reserved in total; at least a microdollar.
    pub least: Cost,
    /// What it would like to have reserved in total. It gets more if this is less than a hundredth
    /// of what is left, so that small requests need no further reservation.
    pub wanted: Cost,
    /// The most that it may have reserved in total.
    pub most: Cost,
    /// When the reservation expires, in the time of the database.
    pub expires_at: Timestamp,
}

/// The answer to a request to reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// The run has so much reserved in total.
    Granted(Cost),
    /// Too little is left of this limit. Nothing has changed.
    Refused(SpendStanding),
}

/// How much of a limit is spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendStanding {
    /// The limit.
    pub limit: SpendLimit,
    /// What runs that have ended have cost.
    pub spent: Cost,
    /// What runs in progress have reserved.
    pub reserved: Cost,
}

/// A limit of which more is spent than was reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendNews {
    /// The tenant.
    pub tenant: TenantId,
    /// The runs that it counts: `tenant`, `agent:NAME` or `key:ID`.
    pub scope: String,
    /// The period: `2026-12-01` or `2026-12`.
    pub period: String,
    /// The limit.
    pub most: Cost,
    /// What runs that have ended have cost.
    pub spent: Cost,
    /// The part of the limit, in percent, that was reported last; 0 for none.
    pub notified: i16,
}

/// Stores what runs spend.
#[async_trait]
pub trait SpendStore: Send + Sync + fmt::Debug {
    /// Reserves an amount for a run, in all of its limits or in none. A repeated request reserves
    /// nothing more.
    async fn spend_reserve(&self, request: &SpendRequest) -> Result<Reserved, StoreError>;

    /// Prolongs the reservations of runs.
    async fn spend_renew(&self, runs: &[(TenantId, RunId)], expires_at: Timestamp) -> Result<(), StoreError>;

    /// Gives back what a run has reserved that does not begin.
    async fn spend_release(&self, tenant: &TenantId, run_id: RunId) -> Result<(), StoreError>;

    /// Gives back what has expired by `now`, in the time of the database. Returns the number of
    /// reservations.
    async fn spend_sweep(&self, now: Timestamp) -> Result<u64, StoreError>;

    /// Reads how much of these limits is spent, in their order.
    async fn spend_list(&self, tenant: &TenantId, limits: Vec<SpendLimit>) -> Result<Vec<SpendStanding>, StoreError>;

    /// Lists limits of these periods of which at least `percent` is spent, unless their whole was
    /// reported.
    async fn spend_news(&self, periods: &[String], percent: i64) -> Result<Vec<SpendNews>, StoreError>;

    /// Stores a message about a part of a limit, in percent, unless one was stored already about
    /// this or a larger part. Returns whether it was stored now.
    async fn spend_notify(&self, news: &SpendNews, percent: i16, delivery: &NewDelivery) -> Result<bool, StoreError>;
}

impl SpendStanding {
    /// Returns what is left to reserve.
    pub fn left(&self) -> Cost {
        self.limit.most.saturating_sub(self.spent + self.reserved)
    }
}
