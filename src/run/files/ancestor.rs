//! Finds the nearest common ancestor of two sessions.

use std::collections::HashSet;

use super::open::found;
use crate::run::context::RunContext;
use crate::run::refusal::Refusal;
use store::Page;
use store::retention::Ancestor;
use values::ids::SessionId;
use values::tenant::TenantId;

/// How many sessions of a line are read at once.
const PAGE: u32 = 200;

/// Returns the nearest session from which both sessions descend; a session also descends from
/// itself. Removed sessions count as long as they are known.
///
/// Reads both lines upwards, page by page, and no further than to the ancestor.
pub async fn common_ancestor(
    ctx: &RunContext,
    tenant: &TenantId,
    one: SessionId,
    other: SessionId,
) -> Result<Ancestor, Refusal> {
    let (mut left, mut right) = (Line::new(one), Line::new(other));
    loop {
        let new_left = left.read_on(ctx, tenant).await?;
        let new_right = right.read_on(ctx, tenant).await?;
        if new_left.is_empty() && new_right.is_empty() {
            return Err(Refusal::NoCommonAncestor { one, other });
        }
        // The parts of the lines that were read begin at the two sessions. So the first common
        // session in them is the nearest one. It is among the new ones of either line.
        let left_found = new_left.into_iter().find(|ancestor| right.has(ancestor));
        let right_found = new_right.into_iter().find(|ancestor| left.has(ancestor));
        let nearest = [left_found, right_found]
            .into_iter()
            .flatten()
            .max_by_key(Ancestor::depth);
        if let Some(nearest) = nearest {
            return Ok(nearest);
        }
    }
}

/// A line of sessions that is read upwards.
struct Line {
    session_id: SessionId,
    seen: HashSet<SessionId>,
    last: Option<SessionId>,
    is_over: bool,
}

impl Line {
    fn new(session_id: SessionId) -> Self {
        Self {
            session_id,
            seen: HashSet::new(),
            last: None,
            is_over: false,
        }
    }

    fn has(&self, ancestor: &Ancestor) -> bool {
        self.seen.contains(&ancestor.session_id())
    }

    /// Reads the next page; empty at the end of the line.
    async fn read_on(&mut self, ctx: &RunContext, tenant: &TenantId) -> Result<Vec<Ancestor>, Refusal> {
        if self.is_over {
            return Ok(Vec::new());
        }
        let page = Page {
            before: self.last,
            limit: PAGE,
        };
        let read = ctx.store.session_lineage(tenant, self.session_id, page).await?;
        let read = found(ctx, tenant, self.session_id, read).await?;
        self.seen.extend(read.iter().map(Ancestor::session_id));
        self.last = read.last().map(Ancestor::session_id).or(self.last);
        self.is_over = read.len() < PAGE as usize;
        Ok(read)
    }
}
