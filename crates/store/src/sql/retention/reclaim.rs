//! Reclaims the segments and states that removed sessions leave. Sessions and segments form the
//! same tree, so the segment of a removed session is needed as long as any session, retained or
//! removed, continues it. When no session continues it, the segment is reclaimed and the parent is
//! checked. A state is reclaimed unless a retained session uses it.

use crate::error::StoreError;
use crate::retention::RemovalFigures;
use crate::rows::values;
use crate::sql::{Engine, Statement, Tally};

/// The name of a removal in errors.
pub(super) const OPERATION: &str = "remove sessions";

/// The condition that no session continues the removed session with the given alias, apart from the
/// exception.
macro_rules! nothing_continues {
    ($alias:literal, $except:literal) => {
        concat!(
            "not exists (
                select 1 from sessions c where c.tenant = ",
            $alias,
            ".tenant and c.parent_session_id = ",
            $alias,
            ".session_id)
            and not exists (
                select 1 from removed_sessions c where c.tenant = ",
            $alias,
            ".tenant and c.parent_session_id = ",
            $alias,
            ".session_id",
            $except,
            ")"
        )
    };
}

/// Finds up to `$1` removed sessions that no session continues. From each, walks up through removed
/// ancestors that no other session continues, `$2` at most.
const FIND: &str = concat!(
    "update removed_sessions set stage = 2
    where (tenant, session_id) in (
        with recursive dead (tenant, session_id, parent_session_id, level) as (
            select tenant, session_id, parent_session_id, 0 from (
                select r.tenant, r.session_id, r.parent_session_id from removed_sessions r
                where r.stage = 0 and ",
    nothing_continues!("r", ""),
    " limit $1) first
            union all
            select p.tenant, p.session_id, p.parent_session_id, d.level + 1
            from dead d
            join removed_sessions p on p.tenant = d.tenant and p.session_id = d.parent_session_id
            where d.level < $2 and ",
    nothing_continues!("p", " and c.session_id <> d.session_id"),
    ")
        select tenant, session_id from dead)
    returning cast(1 as bigint), cast(0 as bigint)"
);

const SEGMENTS: &str = "delete from history_segments
    where (tenant, branch_id, position) in (
        select tenant, branch_id, position from removed_sessions where stage = 2)
    returning cast(1 as bigint), cast(length(payload) as bigint)";

/// A branch is empty once its first segment is removed, since later segments are removed before it.
const BRANCHES: &str = "delete from history_branches
    where (tenant, branch_id) in (
        select tenant, branch_id from removed_sessions where stage = 2 and position = 0)";

/// Marks the parents of reclaimed sessions to be checked.
const RECHECK: &str = "update removed_sessions set stage = 0
    where stage = 1 and (tenant, session_id) in (
        select tenant, parent_session_id from removed_sessions where stage = 2 and parent_session_id is not null)";

const FORGET: &str = "delete from removed_sessions where stage = 2";

const SETTLE: &str = "update removed_sessions set stage = 1
    where stage = 0 and (
        exists (
            select 1 from sessions c
            where c.tenant = removed_sessions.tenant and c.parent_session_id = removed_sessions.session_id)
        or exists (
            select 1 from removed_sessions c
            where c.tenant = removed_sessions.tenant and c.parent_session_id = removed_sessions.session_id))";

const WAITING: &str = "select cast(1 as bigint)
    where exists (select 1 from removed_sessions where stage <> 1) or exists (select 1 from unused_states)";

/// Marks states that may be unused; [`Engine::UNUSED`] and [`HELD`] follow. Marks few at a time,
/// since commits wait for them.
const HOLD: &str = "update unused_states set is_held = true
    where (tenant, hash) in (
        select tenant, hash from (select tenant, hash from unused_states limit 250) next";
const HELD: &str = ")";

/// Records that contents of these tenants may now be unreferenced. Too many tenants do no harm: one
/// sweep finds nothing. The two times follow.
const CHANGED: [&str; 3] = [
    "insert into content_sweeps (tenant, changed_at, swept_at) select s.tenant, (",
    "), (",
    ")
    from unused_states u join states s on s.tenant = u.tenant and s.hash = u.hash
    where u.is_held and s.kind = 'environment' and s.tree is not null
    group by s.tenant
    on conflict (tenant) do update set changed_at = excluded.changed_at",
];

/// Each condition is one index lookup. If nearly all sessions have the same state, the planner
/// would scan all sessions to look for any state. `order by` and `limit` make it use the index.
const STATES: &str = "delete from states
    where (tenant, hash) in (select tenant, hash from unused_states where is_held)
        and hash not in (
            select s.environment_hash from sessions s
            where s.tenant = states.tenant and s.environment_hash >= states.hash
            order by s.environment_hash
            limit 1)
        and hash not in (
            select s.context_hash from sessions s
            where s.tenant = states.tenant and s.context_hash >= states.hash
            order by s.context_hash
            limit 1)
    returning cast(1 as bigint), cast(length(payload) as bigint)";

const SETTLE_STATES: &str = "delete from unused_states where is_held returning cast(1 as bigint), cast(0 as bigint)";

/// Returns the statements that reclaim. The first one marks the sessions that no session continues.
pub(super) fn statements<E: Engine>(limit: i64) -> Vec<Statement<'static>> {
    let mut hold = Statement::new(OPERATION, HOLD);
    hold.push(E::UNUSED);
    hold.push(HELD);
    let plain = |text| Statement::new(OPERATION, text);
    let mut changed = plain(CHANGED[0]);
    for text in [E::TIME, CHANGED[1], E::TIME, CHANGED[2]] {
        changed.push(text);
    }
    vec![
        Statement::with(OPERATION, FIND, values![limit, limit]),
        plain(SEGMENTS),
        plain(BRANCHES),
        plain(RECHECK),
        plain(FORGET),
        plain(SETTLE),
        hold,
        changed,
        plain(STATES),
        plain(SETTLE_STATES),
    ]
}

/// Returns how much the statements removed.
pub(super) fn figures(tallies: &[Tally]) -> RemovalFigures {
    let mut figures = RemovalFigures::default();
    if let [_, segments, .., states, _] = tallies {
        figures.segments = segments.add_to(&mut figures);
        figures.states = states.add_to(&mut figures);
    }
    figures
}

/// Reclaims some segments and states of removed sessions. Returns whether there may be more.
pub(super) async fn reclaim<E: Engine>(engine: &E, limit: i64) -> Result<(RemovalFigures, bool), StoreError> {
    let waiting = Statement::new(OPERATION, WAITING);
    if waiting.fetch_optional::<(i64,)>(engine).await?.is_none() {
        return Ok((RemovalFigures::default(), false));
    }
    let tallies = engine.remove(statements::<E>(limit), None).await?;
    let more = matches!(tallies.as_slice(), [found, .., settled] if found.count > 0 || settled.count > 0);
    Ok((figures(&tallies), more))
}

/// Reclaims all segments and states of removed sessions that are no longer needed.
pub(super) async fn reclaim_all(engine: &impl Engine, limit: i64) -> Result<RemovalFigures, StoreError> {
    let mut all = RemovalFigures::default();
    loop {
        let (figures, more) = reclaim(engine, limit).await?;
        all += figures;
        if !more {
            return Ok(all);
        }
    }
}
