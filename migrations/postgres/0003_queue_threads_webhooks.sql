-- Runs that outlive their connection: the queue with its leases, journals, events, steering, idempotency keys; threads; webhooks;
-- what retention leaves behind.

-- The number of the run's last event, once it has ended.
alter table runs add column event_count bigint not null default 0;
-- How often a worker has begun it.
alter table runs add column attempts integer not null default 1;
alter table runs add column durability text not null default 'session';
alter table runs add column thread text collate "C";
-- Whether its end has moved the thread; for a repeated attempt to commit it.
alter table runs add column thread_moved boolean;
create index runs_by_thread on runs (tenant, thread, run_id) where thread is not null;
create index runs_without_session on runs (completed_at) where status in ('failed', 'cancelled');

-- Runs that have not ended: their place in the queue, their lease and what was asked. A run that lives in one process only has no row.
create table run_queue (
    run_id uuid not null,
    -- Its place within its priority: tenants take turns.
    turn bigint not null,
    -- Grows with each lease, and when one is given back.
    fence bigint not null default 0,
    leased_until timestamptz,
    enqueued_at timestamptz not null,
    attempts integer not null default 0,
    priority smallint not null,
    schema_version smallint not null,
    encoding smallint not null,
    -- Waits for the run that is active on its thread, unless it was cancelled.
    is_held boolean not null default false,
    -- A fork reads its thread and does not move it.
    moves_thread boolean not null default true,
    tenant text not null,
    thread text collate "C",
    owner text,
    control text,
    request bytea not null,
    primary key (tenant, run_id)
) with (fillfactor = 70, toast_tuple_target = 4080);
alter table run_queue alter column request set storage external;
create index run_queue_by_turn on run_queue (priority desc, turn, run_id)
    where leased_until is null and (not is_held or control = 'cancel');
create index run_queue_of_tenant on run_queue (tenant, priority, turn) where leased_until is null;
create index run_queue_by_lease on run_queue (leased_until) where leased_until is not null;
create index run_queue_of_thread on run_queue (tenant, thread, run_id) where thread is not null;

-- How far an execution has come, entry by entry. Gone when its run has ended.
create table run_journal (
    run_id uuid not null,
    sequence bigint not null,
    schema_version smallint not null,
    encoding smallint not null,
    tenant text not null,
    -- Which execution: empty for the run's own agent.
    scope text not null,
    payload bytea not null,
    primary key (tenant, run_id, sequence)
) with (toast_tuple_target = 4080);
alter table run_journal alter column payload set storage external;

-- Events, several in a row. The last ones of a run are made from its record.
create table run_events (
    run_id uuid not null,
    first_sequence bigint not null,
    last_sequence bigint not null,
    created_at timestamptz not null,
    schema_version smallint not null,
    encoding smallint not null,
    tenant text not null,
    payload bytea not null,
    primary key (tenant, run_id, first_sequence)
) with (toast_tuple_target = 4080);
alter table run_events alter column payload set storage external;
create index run_events_by_age on run_events (created_at);

-- Messages that were sent to runs at work, by the sender's id.
create table run_messages (
    run_id uuid not null,
    position bigint not null,
    received_at timestamptz not null,
    schema_version smallint not null,
    encoding smallint not null,
    -- The bytes of the message as JSON, which count towards what a run takes.
    size integer not null,
    tenant text not null,
    message_key text not null,
    status text not null check (status in ('received', 'applied', 'too_late')),
    payload bytea not null,
    primary key (tenant, run_id, message_key)
);
create index run_messages_by_age on run_messages (received_at);

-- What a repeated request is answered with: the thing that the first one made.
create table idempotency_keys (
    resource_id uuid not null,
    expires_at timestamptz not null,
    tenant text not null,
    key text not null,
    digest bytea not null,
    primary key (tenant, key)
);
create index idempotency_keys_by_expiry on idempotency_keys (expires_at);

-- Named pointers to sessions.
create table threads (
    session_id uuid,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    tenant text not null,
    name text collate "C" not null,
    primary key (tenant, name)
) with (fillfactor = 80);
create index threads_by_session on threads (tenant, session_id) where session_id is not null;

-- Messages to the outside, written with what they tell of.
create table webhook_deliveries (
    delivery_id uuid not null,
    run_id uuid not null,
    created_at timestamptz not null,
    -- When it is due; none once it is over.
    due_at timestamptz,
    delivered_at timestamptz,
    attempts integer not null default 0,
    response_status integer,
    schema_version smallint not null,
    encoding smallint not null,
    tenant text not null,
    status text not null check (status in ('pending', 'delivered', 'dead')),
    event text not null,
    url text not null,
    secret text,
    owner text,
    error text,
    payload bytea not null,
    primary key (tenant, delivery_id)
) with (fillfactor = 80);
create index webhook_deliveries_by_due on webhook_deliveries (due_at) where status = 'pending';
create index webhook_deliveries_by_age on webhook_deliveries (created_at) where status <> 'pending';
create index webhook_deliveries_by_run on webhook_deliveries (tenant, run_id, delivery_id);
create index webhook_deliveries_dead on webhook_deliveries (tenant, delivery_id) where status = 'dead';

-- What is left of a session that was removed while others continue it: enough to find and verify their line. As long as the row stands,
-- so does the segment at its place.
create table removed_sessions (
    session_id uuid not null,
    parent_session_id uuid,
    branch_id uuid not null,
    position bigint not null,
    depth bigint not null,
    message_count bigint not null,
    history_start bigint not null,
    removed_at timestamptz not null,
    -- 0: whether anything continues it is to be found out; 1: something does; 2: nothing does.
    stage smallint not null,
    tenant text not null,
    root_hash bytea not null,
    environment_hash bytea not null,
    context_hash bytea not null,
    segment_hash bytea not null,
    primary key (tenant, session_id)
);
create index removed_sessions_by_parent on removed_sessions (tenant, parent_session_id) where parent_session_id is not null;
create index removed_sessions_by_stage on removed_sessions (stage) where stage <> 1;
-- Always empty. Whoever makes something depend on a session names it in the statement; whoever removes sessions locks it.
create table session_removal ();
create index sessions_by_age on sessions (created_at);
create index sessions_by_environment on sessions (tenant, environment_hash);
create index sessions_by_context on sessions (tenant, context_hash);
