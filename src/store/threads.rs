//! Threads as a trait: named pointers to sessions. A run moves its thread in the transaction of its
//! commit.

use std::fmt;

use super::traits::StoreFuture;
use crate::clock::Timestamp;
use crate::ids::SessionId;
use crate::record::{ThreadName, ThreadRecord};
use crate::tenant::TenantId;

/// A page of the list of threads, ordered by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadPage {
    /// Only names after this one.
    pub after: Option<ThreadName>,
    /// The most rows.
    pub limit: u32,
}

/// Where a run begins that goes on a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadPlace {
    /// Where the thread points to; nowhere as long as no run on it has published.
    pub session_id: Option<SessionId>,
    /// The agent of the last run that is to move the thread, waiting or at work, but for those that are cancelled.
    pub agent_ahead: Option<String>,
}

/// What a thread must be for it to be moved by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadExpectation {
    /// Anything; one that does not exist is made.
    Anything,
    /// It must not exist.
    Absent,
    /// It must point to this session, or to none yet.
    At(Option<SessionId>),
}

/// What became of a thread that was to be moved by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadPut {
    /// It points to the session now.
    Moved(ThreadRecord),
    /// It is not what was expected: what it is, or none where it does not exist.
    Unexpected(Option<ThreadRecord>),
    /// There is no such session.
    NoSession,
}

/// Keeps threads.
pub trait ThreadStore: Send + Sync + fmt::Debug {
    /// Points a thread to a session.
    fn thread_put<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a ThreadName,
        session_id: SessionId,
        expected: ThreadExpectation,
        now: Timestamp,
    ) -> StoreFuture<'a, ThreadPut>;

    /// Reads a thread.
    fn thread_lookup<'a>(&'a self, tenant: &'a TenantId, name: &'a ThreadName)
    -> StoreFuture<'a, Option<ThreadRecord>>;

    /// Reads where a run begins that goes on a thread, which need not exist.
    fn thread_place<'a>(&'a self, tenant: &'a TenantId, name: &'a ThreadName) -> StoreFuture<'a, ThreadPlace>;

    /// Lists threads by name.
    fn thread_list<'a>(&'a self, tenant: &'a TenantId, page: &'a ThreadPage) -> StoreFuture<'a, Vec<ThreadRecord>>;

    /// Takes a thread away; the sessions stay. Tells whether there was one.
    fn thread_delete<'a>(&'a self, tenant: &'a TenantId, name: &'a ThreadName) -> StoreFuture<'a, bool>;
}
