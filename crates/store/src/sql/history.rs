//! Reads histories: bundles in two statements, messages by their index in one. A binary search by
//! key finds the segments of the first and the last requested message, so that no others are read.
//!
//! Each statement looks up the position of the session itself, since another session may get the
//! position of a removed one.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;

use super::engine::Engine;
use super::row_batches::{RowFold, rows_fold};
use super::session_lookup::position_lookup;
use super::statement::Statement;
use super::text::sql;
use crate::codec::{HistoryBuilder, HistoryGap};
use crate::error::StoreError;
use crate::rows::{
    BundleParts, BundleRow, NewSegmentRow, PayloadSizeRow, RowName, SegmentRow, SegmentSizeRow, SessionRow,
    stored_count, values,
};
use crate::sessions::SegmentList;
use tasks::off_thread::by_size;
use values::ids::{SessionId, StepId};
use values::message::Message;
use values::session::{Bundle, History};
use values::tenant::TenantId;

const BUNDLE: &str = sql!(
    "select ",
    SessionRow::COLUMNS,
    ", environment.schema_version as environment_version, environment.encoding as environment_encoding,
        environment.payload as environment_payload, context.schema_version as context_version,
        context.encoding as context_encoding, context.payload as context_payload
    from sessions s
    left join states environment on environment.tenant = s.tenant and environment.hash = s.environment_hash
    left join states context on context.tenant = s.tenant and context.hash = s.context_hash
    where s.tenant = $1 and s.session_id = $2"
);

/// Selects the segments of the session `$2` that contain any index from `$3` up to but excluding
/// `$4`. The engine adds the join.
///
/// `line` walks back to the branch that contains the first index. `search` is a binary search in
/// each of these branches. It finds the last segment that starts at or before the first index, and
/// the last segment that starts before the end. If a position is missing, the search includes more
/// segments, never fewer. A whole history needs no search. The rows are unsorted, since a sort
/// would copy the payloads in the server's memory.
///
/// No `where` clause has a condition on `$3` and `$4` alone. Otherwise PostgreSQL would plan each
/// read for their values, which costs more than it saves.
macro_rules! segments {
    ($columns:literal) => {
        concat!(
            "with recursive line (branch_id, last_position, first_index) as (
        select p.branch_id, p.position,
            (select o.first_index from history_segments o
            where o.tenant = $1 and o.branch_id = p.branch_id and o.position = 0)
        from sessions p where p.tenant = $1 and p.session_id = $2
        union all
        select b.parent_branch_id, b.parent_position,
            (select o.first_index from history_segments o
            where o.tenant = $1 and o.branch_id = b.parent_branch_id and o.position = 0)
        from line join history_branches b on b.tenant = $1 and b.branch_id = line.branch_id
        where b.parent_branch_id is not null and line.first_index > $3
    ), search (branch_id, position, last_position, rest) as (
        select branch_id, cast(0 as bigint),
            case when $3 > 0 or $4 < 9223372036854775807 then 0 else last_position end,
            case when $3 > 0 or $4 < 9223372036854775807 then last_position else 0 end
        from line
        union all
        select s.branch_id,
            coalesce(
                (select h.position from history_segments h
                where h.tenant = $1 and h.branch_id = s.branch_id and h.position = s.position + (s.rest + 1) / 2
                    and h.first_index <= $3),
                s.position),
            coalesce(
                (select s.last_position from history_segments h
                where h.tenant = $1 and h.branch_id = s.branch_id and h.position = s.last_position + (s.rest + 1) / 2
                    and h.first_index >= $4),
                s.last_position + (s.rest + 1) / 2),
            s.rest / 2
        from search s
        where s.rest > 0
    )
    select ",
            $columns,
            " from search s"
        )
    };
}

const SEGMENTS: &str =
    segments!("h.branch_id, h.position, h.first_index, h.message_count, h.schema_version, h.encoding, h.payload");

/// Selects columns of the segment that a session added.
macro_rules! new_segment {
    ($columns:literal) => {
        concat!(
            "select ",
            $columns,
            " from sessions s
            join history_segments h on h.tenant = s.tenant and h.branch_id = s.branch_id and h.position = s.position
            where s.tenant = $1 and s.session_id = $2"
        )
    };
}

/// Selects the sizes of the same segments, each with the number of messages of the whole history.
const SEGMENT_SIZES: &str = segments!(
    "h.branch_id, h.position, h.first_index, h.message_count, h.encoding,
        cast(length(h.payload) as bigint) as stored_bytes, substr(h.payload, 1, 18) as beginning,
        (select message_count from sessions where tenant = $1 and session_id = $2) as total"
);

/// Selects the session that added the messages of the same segments.
const SEGMENT_SESSION: &str = segments!("h.session_id");

/// Loads a bundle with the messages that running it needs.
pub(super) async fn bundle_load(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
) -> Result<Option<Bundle>, StoreError> {
    let Some(parts) = parts_load(engine, tenant, session_id).await? else {
        return Ok(None);
    };
    let needed = parts.head.history_start..parts.head.message_count;
    // Reads to the end, so that a surplus message is detected.
    let segments = read_segments(engine, tenant, session_id, needed.start..u64::MAX).await?;
    match by_size(tenant, segments.bytes(), || segments.into_history(needed)).await {
        Ok(history) => Ok(Some(parts.with_history(history))),
        Err(gap) => removed_or(gap, engine, tenant, session_id).await,
    }
}

/// Loads a session with its states.
pub(super) async fn states_load(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
) -> Result<Option<Bundle>, StoreError> {
    let parts = parts_load(engine, tenant, session_id).await?;
    Ok(parts.map(|parts| {
        // On overflow, the history could not fit into memory anyway.
        let total = usize::try_from(parts.head.message_count).unwrap_or(usize::MAX);
        parts.with_history(History::starting_at(total, []))
    }))
}

/// Returns the bytes of a session's states.
pub(super) async fn states_size(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
) -> Result<u64, StoreError> {
    let statement = "select st.encoding, cast(length(st.payload) as bigint) as stored_bytes,
            substr(st.payload, 1, 18) as beginning
        from sessions s
        join states st on st.tenant = s.tenant and st.hash in (s.environment_hash, s.context_hash)
        where s.tenant = $1 and s.session_id = $2";
    let rows: Vec<PayloadSizeRow> = Statement::new("measure states", statement)
        .bind(tenant.as_str())
        .bind(session_id.as_uuid())
        .fetch_all(engine)
        .await?;
    Ok(rows.iter().map(PayloadSizeRow::bytes).sum())
}

async fn parts_load(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
) -> Result<Option<BundleParts>, StoreError> {
    let row: Option<BundleRow> = Statement::new("load bundle", BUNDLE)
        .bind(tenant.as_str())
        .bind(session_id.as_uuid())
        .fetch_optional(engine)
        .await?;
    let Some(row) = row else { return Ok(None) };
    by_size(tenant, row.state_bytes(), || row.into_parts()).await.map(Some)
}

/// Lists the segments that contain messages, without reading the messages.
pub(super) async fn segment_list<E: Engine>(
    engine: &E,
    tenant: &TenantId,
    session_id: SessionId,
    from: u64,
    limit: u32,
) -> Result<Option<SegmentList>, StoreError> {
    let mut select = Statement::new("list segments", SEGMENT_SIZES)
        .bind(tenant.as_str())
        .bind(session_id.as_uuid())
        .bind(stored_count(from))
        .bind(stored_count(from.saturating_add(u64::from(limit))));
    E::push_segments_join(&mut select);
    select.push(" order by h.first_index, h.message_count limit 256");
    let rows: Vec<SegmentSizeRow> = select.fetch_all(engine).await?;
    let total = match rows.first() {
        Some(row) => row.total,
        None => match position_lookup(engine, tenant, session_id).await? {
            Some(end) => end.message_count,
            None => return Ok(None),
        },
    };
    let name = RowName::new("sessions", &session_id);
    let total = name.count("message_count", total)?;
    if rows.is_empty() && limit > 0 && from < total {
        return Err(name.corrupt("message_count", HistoryGap));
    }
    let segments = rows.iter().map(SegmentSizeRow::size).collect::<Result<_, _>>()?;
    Ok(Some(SegmentList { segments, total }))
}

/// Finds the session that added a message. Returns `None` if the session does not exist or has no
/// such message.
pub(super) async fn message_session<E: Engine>(
    engine: &E,
    tenant: &TenantId,
    session_id: SessionId,
    index: u64,
) -> Result<Option<SessionId>, StoreError> {
    let mut select = Statement::new("find message", SEGMENT_SESSION)
        .bind(tenant.as_str())
        .bind(session_id.as_uuid())
        .bind(stored_count(index))
        .bind(stored_count(index.saturating_add(1)));
    E::push_segments_join(&mut select);
    let found: Option<(Uuid,)> = select.fetch_optional(engine).await?;
    Ok(found.map(|(added_by,)| SessionId::from_uuid(added_by)))
}

/// Reads messages by their index.
pub(super) async fn message_list(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
    indexes: Range<u64>,
) -> Result<Option<Vec<Arc<Message>>>, StoreError> {
    if indexes.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let segments = read_segments(engine, tenant, session_id, indexes.clone()).await?;
    match segments.into_range(indexes) {
        Ok(messages) => Ok(Some(messages)),
        Err(gap) => removed_or(gap, engine, tenant, session_id).await,
    }
}

/// Returns the result of a read with missing segments: either the session was removed meanwhile, or
/// the store is damaged.
async fn removed_or<T>(
    gap: HistoryGap,
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
) -> Result<Option<T>, StoreError> {
    match position_lookup(engine, tenant, session_id).await? {
        None => Ok(None),
        Some(_) => Err(RowName::new("sessions", &session_id).corrupt("message_count", gap)),
    }
}

/// Reads the messages that the session itself added.
pub(super) async fn new_message_list(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
) -> Result<Option<Vec<Arc<Message>>>, StoreError> {
    let statement = new_segment!(
        "h.branch_id, h.position, h.first_index, h.message_count, h.schema_version, h.encoding, h.payload"
    );
    let select = Statement::with("list new messages", statement, values![tenant, session_id]);
    let builder: HistoryBuilder = rows_fold(engine, tenant, select).await?;
    Ok((!builder.is_empty()).then(|| builder.into_messages()))
}

/// Reads the messages that the session itself added and that the steps produced.
pub(super) async fn step_message_list(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
    steps: BTreeSet<StepId>,
) -> Result<Option<Vec<Arc<Message>>>, StoreError> {
    let statement = new_segment!("h.branch_id, h.position, h.message_count, h.schema_version, h.encoding, h.payload");
    let select = Statement::with("list messages of steps", statement, values![tenant, session_id]);
    let row: Option<NewSegmentRow> = select.fetch_optional(engine).await?;
    let Some(row) = row else { return Ok(None) };
    by_size(tenant, row.bytes(), move || row.messages_of(&steps))
        .await
        .map(Some)
}

/// Decodes the segments of a session's line that contain any of the indexes; none if the session
/// does not exist.
async fn read_segments<E: Engine>(
    engine: &E,
    tenant: &TenantId,
    session_id: SessionId,
    indexes: Range<u64>,
) -> Result<HistoryBuilder, StoreError> {
    let mut select = Statement::new("load history", SEGMENTS)
        .bind(tenant.as_str())
        .bind(session_id.as_uuid())
        .bind(stored_count(indexes.start))
        .bind(stored_count(indexes.end));
    E::push_segments_join(&mut select);
    rows_fold(engine, tenant, select).await
}

impl RowFold for HistoryBuilder {
    type Row<'r> = SegmentRow<'r>;

    fn push_row(&mut self, row: SegmentRow<'_>) -> Result<(), StoreError> {
        row.push_into(self)
    }
}
