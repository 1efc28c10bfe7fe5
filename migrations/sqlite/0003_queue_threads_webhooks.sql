-- Runs that outlive their connection: the queue with its leases, journals, events, steering, idempotency keys; threads; webhooks;
-- what retention leaves behind. Times are microseconds since 1970 in UTC, truths are 0 and 1.

-- The number of the run's last event, once it has ended.
alter table runs add column event_count integer not null default 0;
-- How often a worker has begun it.
alter table runs add column attempts integer not null default 1;
alter table runs add column durability text not null default 'session';
alter table runs add column thread text;
-- Whether its end has moved the thread; for a repeated attempt to commit it.
alter table runs add column thread_moved integer;
create index runs_by_thread on runs (tenant, thread, run_id) where thread is not null;
create index runs_without_session on runs (completed_at) where status in ('failed', 'cancelled');

-- Runs that have not ended: their place in the queue, their lease and what was asked. A run that lives in one process only has no row.
create table run_queue (
    run_id blob not null,
    -- Its place within its priority: tenants take turns.
    turn integer not null,
    -- Grows with each lease, and when one is given back.
    fence integer not null default 0,
    leased_until integer,
    enqueued_at integer not null,
    attempts integer not null default 0,
    priority integer not null,
    schema_version integer not null,
    encoding integer not null,
    -- Waits for the run that is active on its thread, unless it was cancelled.
    is_held integer not null default 0,
    -- A fork reads its thread and does not move it.
    moves_thread integer not null default 1,
    tenant text not null,
    thread text,
    owner text,
    control text,
    request blob not null,
    primary key (tenant, run_id)
) strict;
create index run_queue_by_turn on run_queue (priority desc, turn, run_id)
    where leased_until is null and (not is_held or control = 'cancel');
create index run_queue_of_tenant on run_queue (tenant, priority, turn) where leased_until is null;
create index run_queue_by_lease on run_queue (leased_until) where leased_until is not null;
create index run_queue_of_thread on run_queue (tenant, thread, run_id) where thread is not null;

-- How far an execution has come, entry by entry. Gone when its run has ended.
create table run_journal (
    run_id blob not null,
    sequence integer not null,
    schema_version integer not null,
    encoding integer not null,
    tenant text not null,
    -- Which execution: empty for the run's own agent.
    scope text not null,
    payload blob not null,
    primary key (tenant, run_id, sequence)
) strict;

-- Events, several in a row. The last ones of a run are made from its record.
create table run_events (
    run_id blob not null,
    first_sequence integer not null,
    last_sequence integer not null,
    created_at integer not null,
    schema_version integer not null,
    encoding integer not null,
    tenant text not null,
    payload blob not null,
    primary key (tenant, run_id, first_sequence)
) strict;
create index run_events_by_age on run_events (created_at);

-- Messages that were sent to runs at work, by the sender's id.
create table run_messages (
    run_id blob not null,
    position integer not null,
    received_at integer not null,
    schema_version integer not null,
    encoding integer not null,
    -- The bytes of the message as JSON, which count towards what a run takes.
    size integer not null,
    tenant text not null,
    message_key text not null,
    status text not null check (status in ('received', 'applied', 'too_late')),
    payload blob not null,
    primary key (tenant, run_id, message_key)
) strict;
create index run_messages_by_age on run_messages (received_at);

-- What a repeated request is answered with: the thing that the first one made.
create table idempotency_keys (
    resource_id blob not null,
    expires_at integer not null,
    tenant text not null,
    key text not null,
    digest blob not null,
    primary key (tenant, key)
) strict;
create index idempotency_keys_by_expiry on idempotency_keys (expires_at);

-- Named pointers to sessions.
create table threads (
    session_id blob,
    version integer not null,
    created_at integer not null,
    updated_at integer not null,
    tenant text not null,
    name text not null,
    primary key (tenant, name)
) strict;
create index threads_by_session on threads (tenant, session_id) where session_id is not null;

-- Messages to the outside, written with what they tell of.
create table webhook_deliveries (
    delivery_id blob not null,
    run_id blob not null,
    created_at integer not null,
    -- When it is due; none once it is over.
    due_at integer,
    delivered_at integer,
    attempts integer not null default 0,
    response_status integer,
    schema_version integer not null,
    encoding integer not null,
    tenant text not null,
    status text not null check (status in ('pending', 'delivered', 'dead')),
    event text not null,
    url text not null,
    secret text,
    owner text,
    error text,
    payload blob not null,
    primary key (tenant, delivery_id)
) strict;
create index webhook_deliveries_by_due on webhook_deliveries (due_at) where status = 'pending';
create index webhook_deliveries_by_age on webhook_deliveries (created_at) where status <> 'pending';
create index webhook_deliveries_by_run on webhook_deliveries (tenant, run_id, delivery_id);
create index webhook_deliveries_dead on webhook_deliveries (tenant, delivery_id) where status = 'dead';

-- What is left of a session that was removed while others continue it: enough to find and verify their line. As long as the row stands,
-- so does the segment at its place.
create table removed_sessions (
    session_id blob not null,
    parent_session_id blob,
    branch_id blob not null,
    position integer not null,
    depth integer not null,
    message_count integer not null,
    history_start integer not null,
    removed_at integer not null,
    -- 0: whether anything continues it is to be found out; 1: something does; 2: nothing does.
    stage integer not null,
    tenant text not null,
    root_hash blob not null,
    environment_hash blob not null,
    context_hash blob not null,
    segment_hash blob not null,
    primary key (tenant, session_id)
) strict;
create index removed_sessions_by_parent on removed_sessions (tenant, parent_session_id) where parent_session_id is not null;
create index removed_sessions_by_stage on removed_sessions (stage) where stage <> 1;
create index sessions_by_age on sessions (created_at);
create index sessions_by_environment on sessions (tenant, environment_hash);
create index sessions_by_context on sessions (tenant, context_hash);
