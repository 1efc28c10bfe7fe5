-- Sessions, runs, agents, keys, the queue, threads, webhooks, files, and commands for workers.
--
-- The tenant leads every key. Payloads are opaque bytes with a version and an encoding of their own:
-- 0 for no compression, 1 for a zstd frame with the dictionary of the service. They are compressed
-- already, and in line they cost one row instead of several. The checks of values are in the code,
-- which has types for them: PostgreSQL parses a check again in each statement.

-- A branch is a line of segments. One that has a parent continues after that position.
create table history_branches (
    tenant text not null,
    branch_id uuid not null,
    parent_branch_id uuid,
    parent_position bigint,
    primary key (tenant, branch_id)
);

-- The messages that one session added. The primary key arbitrates sessions that continue the same
-- one.
create table history_segments (
    branch_id uuid not null,
    -- The session that added them, which may have been removed.
    session_id uuid not null,
    position bigint not null,
    first_index bigint not null,
    message_count integer not null,
    schema_version smallint not null,
    encoding smallint not null,
    tenant text not null,
    payload bytea not null,
    primary key (tenant, branch_id, position)
) with (toast_tuple_target = 4080);
alter table history_segments alter column payload set storage external;

-- Environments and contexts by the hash of their canonical JSON. A commit locks the row of a state
-- that is there already: it names the state in an `on conflict` that updates no row.
create table states (
    schema_version smallint not null,
    encoding smallint not null,
    tenant text not null,
    hash bytea not null,
    -- environment, context
    kind text not null,
    -- The hash of the root directory of an environment's files. Null without files.
    tree bytea,
    payload bytea not null,
    primary key (tenant, hash)
) with (toast_tuple_target = 4080);
alter table states alter column payload set storage external;
create index states_by_tree on states (tenant, tree) where kind = 'environment' and tree is not null;

-- States of removed sessions, which are deleted unless another session has them.
create table unused_states (
    tenant text not null,
    hash bytea not null,
    -- Whether the transaction under way keeps commits from using it.
    is_held boolean not null,
    primary key (tenant, hash)
);

create table sessions (
    session_id uuid not null,
    parent_session_id uuid,
    -- The root of its tree: itself, unless it has a parent. The root may have been removed.
    root_session_id uuid not null,
    -- The other session of a merge, which may have been removed.
    merged_session_id uuid,
    -- The session with whose environment it began, unless that is its parent's.
    environment_session_id uuid,
    run_id uuid,
    -- The session of the agent that started this one, committed with it.
    subagent_of uuid,
    -- The agent instance. Contexts are stored without it, so that those of different conversations
    -- can be equal.
    agent_id uuid not null,
    branch_id uuid not null,
    position bigint not null,
    depth bigint not null,
    execution_count bigint not null,
    message_count bigint not null,
    -- The end of what the newest summary covers, as an index in the whole history.
    history_start bigint not null,
    created_at timestamptz not null,
    agent_created_at timestamptz not null,
    schema_version smallint not null,
    -- Whether it has other files than its parent.
    has_files_changed boolean not null,
    tenant text not null,
    agent text not null,
    agent_version bytea,
    -- completed, stopped, waiting: the status of its run when it was published.
    run_status text,
    -- The thread of the run that published it, or that a change of files moved to it.
    thread text collate "C",
    root_hash bytea not null,
    environment_hash bytea not null,
    context_hash bytea not null,
    segment_hash bytea not null,
    -- JSON as text: jsonb would change numbers, which the root hash covers.
    metadata text not null,
    -- The beginning of the newest message of the user, its own or inherited.
    preview text,
    primary key (tenant, session_id)
);
-- Has the time, so that a list of trees reads nothing but the index.
create index sessions_by_root on sessions (tenant, root_session_id, session_id, created_at);
create index sessions_by_parent on sessions (tenant, parent_session_id) where parent_session_id is not null;
create index sessions_by_agent on sessions (tenant, agent, session_id);
create index sessions_by_thread on sessions (tenant, thread, session_id) where thread is not null;
create index sessions_by_metadata on sessions using gin ((metadata::jsonb) jsonb_path_ops) where metadata <> '{}';
create index sessions_by_subagent on sessions (tenant, subagent_of, session_id) where subagent_of is not null;
create index sessions_by_environment on sessions (tenant, environment_hash);
create index sessions_by_context on sessions (tenant, context_hash);

-- What is left of a session that was removed while others continue it: enough to find and verify
-- their line. As long as the row stands, so does the segment at its position.
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

-- Has one row. A removal of sessions locks it, so that removals go one by one.
create table removal_turn (
    turn smallint not null primary key check (turn = 1)
);
insert into removal_turn (turn) values (1);

create table runs (
    run_id uuid not null,
    session_id uuid not null,
    base_session_id uuid,
    -- The run that answers its open calls.
    answer_run_id uuid,
    input_tokens bigint not null,
    output_tokens bigint not null,
    cache_read_tokens bigint not null,
    cache_write_tokens bigint not null,
    reasoning_tokens bigint not null,
    total_tokens bigint not null,
    -- US dollars.
    cost double precision,
    -- What the parts of known price cost, where the whole cost is not known.
    cost_known_part double precision,
    step_count bigint not null,
    -- The number of the run's last event, once it has ended.
    event_count bigint not null,
    created_at timestamptz not null,
    started_at timestamptz,
    completed_at timestamptz,
    -- When the last of its open calls expires that a person answers. Null if there is none, and not
    -- changed by an answer. A sweep sets it to null after that time.
    person_until timestamptz,
    -- The same for the calls that the caller's program executes.
    client_until timestamptz,
    -- How often a worker has begun it.
    attempts integer not null,
    -- How many of the last messages of the run's session are its output. Null if `output` has them.
    output_messages smallint,
    schema_version smallint not null,
    output_encoding smallint not null,
    steps_encoding smallint not null,
    -- Whether its end has moved the thread; for a repeated attempt to commit it.
    thread_moved boolean,
    -- Whether it publishes its session. Otherwise `output` and `steps` have no messages.
    publishes boolean not null,
    -- Whether its caller has deleted its response. Null stands for no, and takes no space.
    hidden boolean,
    tenant text not null,
    thread text collate "C",
    agent text not null,
    agent_version bytea,
    model text not null,
    -- The model of the run's chain that answered last.
    answered_by text,
    mode text not null,
    durability text not null,
    status text not null,
    stop_reason text,
    error text,
    metadata text not null,
    -- Who started it, as JSON. Null if no API key existed.
    created_by text,
    output bytea not null,
    steps bytea not null,
    primary key (tenant, run_id)
) with (toast_tuple_target = 4080);
alter table runs alter column output set storage external;
alter table runs alter column steps set storage external;
create index runs_by_agent on runs (tenant, agent, run_id);
create index runs_by_model on runs (tenant, model, run_id);
create index runs_by_status on runs (tenant, status, run_id) where status <> 'completed';
create index runs_by_thread on runs (tenant, thread, run_id) where thread is not null;
-- Runs that wait for answers. A sweep takes out those whose calls have expired. The time is in the
-- index, so that until then no expired run is read. The status is, so that SQLite prefers these
-- indexes to those of agents and threads.
create index runs_waiting_for_person on runs (tenant, status, run_id, person_until)
    where status = 'waiting' and person_until is not null;
create index runs_waiting_for_client on runs (tenant, status, run_id, client_until)
    where status = 'waiting' and client_until is not null;
create index runs_by_metadata on runs using gin ((metadata::jsonb) jsonb_path_ops) where metadata <> '{}';
-- To give the calls back if the run that answers them ends without a session.
create index runs_by_answer on runs (tenant, answer_run_id) where answer_run_id is not null;
-- A run with a session is found by the session. So the next two have only runs without one.
-- To find the run that has reserved a session id.
create unique index runs_without_session_by_session on runs (tenant, session_id)
    where not publishes or status not in ('completed', 'stopped', 'waiting', 'answered');
-- To list the runs that began at a session, and to find out whether a queued run begins there.
create index runs_without_session_by_base on runs (tenant, base_session_id, run_id)
    where not publishes or status not in ('completed', 'stopped', 'waiting', 'answered');
create index runs_without_session on runs (completed_at) where not publishes or status in ('failed', 'cancelled');

-- Runs that have not ended: their place in the queue, their lease and what was asked. A run that
-- lives in one process only has no row.
create table run_queue (
    run_id uuid not null,
    -- Its place among the runs of a level: tenants take turns.
    turn bigint not null,
    -- Grows with each lease, and when one is given back.
    fence bigint not null default 0,
    leased_until timestamptz,
    enqueued_at timestamptz not null,
    attempts integer not null default 0,
    -- Runs of a higher level are leased first, whichever tenant's they are. The priority counts
    -- among the runs of a tenant and level.
    level smallint not null default 0,
    priority smallint not null,
    schema_version smallint not null,
    encoding smallint not null,
    -- Waits for the run that is active on its thread, unless it was cancelled.
    is_held boolean not null default false,
    -- A fork reads its thread and does not move it.
    moves_thread boolean not null default true,
    -- Begins at the session to which its thread points then. Otherwise its record names its base.
    follows_thread boolean not null default true,
    tenant text not null,
    thread text collate "C",
    owner text,
    control text,
    request bytea not null,
    primary key (tenant, run_id)
) with (fillfactor = 70, toast_tuple_target = 4080);
alter table run_queue alter column request set storage external;
create index run_queue_by_turn on run_queue (level desc, turn, run_id)
    where leased_until is null and (not is_held or control = 'cancel');
create index run_queue_of_tenant on run_queue (tenant, level, turn) where leased_until is null;
create index run_queue_by_priority on run_queue (tenant, level, priority desc, run_id)
    where leased_until is null and (not is_held or control = 'cancel');
create index run_queue_by_lease on run_queue (leased_until) where leased_until is not null;
create index run_queue_of_thread on run_queue (tenant, thread, run_id) where thread is not null;
-- A thread has one active run.
create unique index run_queue_active on run_queue (tenant, thread)
    where thread is not null and moves_thread and not is_held;

-- The tenants whose waiting runs are limited. A run of theirs is accepted with the row locked.
create table limited_tenants (
    tenant text not null primary key
);

-- How far an execution has come, entry by entry. Deleted when its run has ended.
create table run_journal (
    run_id uuid not null,
    sequence bigint not null,
    schema_version smallint not null,
    encoding smallint not null,
    tenant text not null,
    -- Which execution: empty for the run's own agent.
    scope text not null,
    -- The hash of the root directory of the files of an environment in the entry.
    tree bytea,
    payload bytea not null,
    primary key (tenant, run_id, sequence)
) with (toast_tuple_target = 4080);
alter table run_journal alter column payload set storage external;
create index run_journal_by_tree on run_journal (tenant) where tree is not null;

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

-- Messages that were sent to active runs, by the sender's id.
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
    -- How many runs have moved it.
    run_count bigint not null default 0,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    tenant text not null,
    name text collate "C" not null,
    title text,
    -- JSON as text, as in `sessions`.
    metadata text not null default '{}',
    primary key (tenant, name)
) with (fillfactor = 80);
create index threads_by_session on threads (tenant, session_id) where session_id is not null;
create index threads_by_metadata on threads using gin ((metadata::jsonb) jsonb_path_ops) where metadata <> '{}';

-- Messages to receivers outside, written with what they tell of.
create table webhook_deliveries (
    delivery_id uuid not null,
    -- Null if it is not about a run.
    run_id uuid,
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
    -- The host of the URL. Deliveries to one host share its slots.
    receiver text not null,
    secret text,
    -- The span of the run, if the receiver gets it.
    traceparent text,
    owner text,
    error text,
    payload bytea not null,
    primary key (tenant, delivery_id)
) with (fillfactor = 80);
create index webhook_deliveries_by_due on webhook_deliveries (due_at) where status = 'pending';
-- What is due of one tenant and to one receiver is found without what others wait for, and a tenant
-- is passed over in one look.
create index webhook_deliveries_by_tenant on webhook_deliveries (tenant, receiver, due_at) where status = 'pending';
create index webhook_deliveries_by_age on webhook_deliveries (created_at) where status <> 'pending';
create index webhook_deliveries_by_run on webhook_deliveries (tenant, run_id, delivery_id);
create index webhook_deliveries_dead on webhook_deliveries (tenant, delivery_id) where status = 'dead';

-- What runs have spent and reserved of each limit. In microdollars.
create table spend_periods (
    spent bigint not null default 0,
    reserved bigint not null default 0,
    most bigint not null,
    -- The part of the limit, in percent, about which a message was sent last.
    notified smallint not null default 0,
    tenant text collate "C" not null,
    -- `tenant`, `agent:NAME` or `key:ID`.
    scope text collate "C" not null,
    -- `2026-12-01` for a day or `2026-12` for a month.
    period text collate "C" not null,
    primary key (tenant, scope, period)
) with (fillfactor = 50);

-- What a run has reserved of each limit that counts it. A row whose reservation has expired stays
-- for some days, without an amount: its run may end after all.
create table spend_reservations (
    run_id uuid not null,
    amount bigint not null,
    expires_at timestamptz,
    tenant text collate "C" not null,
    scope text collate "C" not null,
    period text collate "C" not null,
    primary key (tenant, run_id, scope, period)
) with (fillfactor = 70);
create index spend_reservations_by_expiry on spend_reservations (expires_at);

create table agent_versions (
    created_at timestamptz not null,
    schema_version smallint not null,
    encoding smallint not null,
    tenant text not null,
    version bytea not null,
    name text not null,
    payload bytea not null,
    primary key (tenant, version)
);
create index agent_versions_by_name on agent_versions (tenant, name, created_at, version);

-- The current version of each name.
create table agents (
    tenant text not null,
    name text collate "C" not null,
    version bytea not null,
    primary key (tenant, name)
);

create table api_keys (
    key_id uuid not null primary key,
    secret_hash bytea not null unique,
    tenant text not null,
    scopes text not null,
    label text not null,
    -- What the runs of the key's callers may do, as JSON with a version; null limits nothing.
    limits text,
    created_at timestamptz not null,
    revoked_at timestamptz
);

-- Sessions of the console: a browser has a secret in place of an API key, and so its scopes.
create table console_sessions (
    key_id uuid not null,
    created_at timestamptz not null,
    -- Use moves it, up to a limit after created_at.
    expires_at timestamptz not null,
    secret_hash bytea not null primary key,
    tenant text not null
);
create index console_sessions_by_key on console_sessions (key_id, created_at);
create index console_sessions_by_expiry on console_sessions (expires_at);

-- Tokens of identity providers that are refused: those of a subject that were issued before a time.
-- A revocation is removed once no such token can be valid any more.
create table token_revocations (
    issued_before timestamptz not null,
    issuer text not null,
    subject text not null,
    primary key (issuer, subject)
);

-- The last entry of each chain of the audit log: of each tenant, and of the service, whose name is
-- empty. An act locks the row before it appends an entry. Rows of removed tenants stay.
create table audit_heads (
    number bigint not null,
    chain text not null primary key,
    hash bytea not null
);

-- Administrative acts. Each entry has the hash of the one before.
create table audit_entries (
    number bigint not null,
    chain text not null,
    -- JSON, as it was hashed.
    entry text not null,
    previous_hash bytea not null,
    hash bytea not null,
    primary key (chain, number)
);

-- Files of workspaces by their hash: files, chunks of large files, and directories. They are written
-- before the session that refers to them. A content that no session and no journal refers to is
-- swept.
create table contents (
    -- When a run last wrote it, or found that it is stored already; a few minutes may be missing.
    written_at timestamptz not null,
    -- Its bytes, uncompressed.
    size bigint not null,
    -- 0: a file or a chunk; 1: the list of the chunks of a file; 2: a directory.
    kind smallint not null,
    schema_version smallint not null,
    -- 64 or more for a content in an object store. The rest is the encoding of the object, and the
    -- payload is the id of the object. Each object belongs to one row at most.
    encoding smallint not null,
    tenant text not null,
    hash bytea not null,
    payload bytea not null,
    primary key (tenant, hash)
) with (toast_tuple_target = 4080);
alter table contents alter column payload set storage external;
create index contents_in_objects on contents (tenant) where encoding >= 64;

-- The tenants that may have contents to sweep. A tenant has a row from a change of its contents, or
-- a removal of an environment with files, until a sweep finds that all has come to rest.
create table content_sweeps (
    changed_at timestamptz not null,
    swept_at timestamptz not null,
    tenant text not null primary key
);

-- The bytes of all contents of a tenant, uncompressed. A tenant without contents has no row.
create table content_totals (
    bytes bigint not null,
    tenant text not null primary key
);

-- The objects that no content refers to: those that are being written, and those whose content was
-- removed. A sweep deletes the object, then the row.
create table content_objects (
    recorded_at timestamptz not null,
    -- More than 0 if no content may refer to the object any more.
    is_removable smallint not null,
    tenant text not null,
    hash bytea not null,
    object bytea not null,
    primary key (tenant, hash, object)
);
create index content_objects_by_time on content_objects (is_removable, recorded_at);

-- Commands of agents that workers run on other machines. A row exists from the call until the caller
-- has read how the command ended.
create table environment_commands (
    inserted_at timestamptz not null,
    -- Until when somebody waits for the command. The waiting replica renews it.
    awaited_until timestamptz not null,
    -- Until when its worker has the command. The worker renews it. A command is taken once only.
    leased_until timestamptz,
    command_id uuid not null,
    execution_id uuid not null,
    is_stopped boolean not null,
    -- The worker that should run it, since it has the files.
    preferred_worker text,
    worker text,
    tenant text not null,
    request text not null,
    -- How it ended.
    outcome text,
    primary key (tenant, command_id)
);
create index environment_commands_waiting on environment_commands (command_id) where worker is null;
create index environment_commands_running on environment_commands (tenant) where worker is not null and outcome is null;
create index environment_commands_by_awaited on environment_commands (awaited_until);

-- The output of commands, in pieces.
create table environment_command_output (
    position bigint not null,
    command_id uuid not null,
    tenant text not null,
    bytes bytea not null,
    primary key (tenant, command_id, position),
    foreign key (tenant, command_id) references environment_commands on delete cascade
);

-- Where a service that is asked whether it is ready tries to write. The rows are rolled back, so
-- the table stays empty. The value is stored out of line and is not compressed, so each attempt
-- needs more than a page.
create table write_checks (filler bytea not null);
alter table write_checks alter column filler set storage external;

create function refuse_update() returns trigger language plpgsql as $$
begin
    raise exception 'rows of % are immutable', tg_table_name using errcode = 'restrict_violation';
end
$$;

create trigger history_branches_are_immutable before update on history_branches
    for each statement execute function refuse_update();
create trigger history_segments_are_immutable before update on history_segments
    for each statement execute function refuse_update();
create trigger states_are_immutable before update on states
    for each row execute function refuse_update();
create trigger sessions_are_immutable before update on sessions
    for each statement execute function refuse_update();
create trigger agent_versions_are_immutable before update on agent_versions
    for each statement execute function refuse_update();
create function refuse_lower_head() returns trigger language plpgsql as $$
begin
    if new.number < old.number then
        raise exception 'the head of an audit chain only grows' using errcode = 'restrict_violation';
    end if;
    return new;
end
$$;
create trigger audit_heads_grow before update on audit_heads
    for each row execute function refuse_lower_head();
create trigger audit_heads_stay before delete or truncate on audit_heads
    for each statement execute function refuse_update();
create trigger audit_entries_are_immutable before update or delete or truncate on audit_entries
    for each statement execute function refuse_update();
create trigger contents_are_immutable
    before update of size, kind, schema_version, encoding, tenant, hash, payload on contents
    for each row execute function refuse_update();

create function count_new_contents() returns trigger language plpgsql as $$
begin
    insert into content_totals (tenant, bytes)
    select tenant, sum(size) from changed group by tenant having sum(size) > 0 order by tenant
    on conflict (tenant) do update set bytes = content_totals.bytes + excluded.bytes;
    return null;
end
$$;

create function count_removed_contents() returns trigger language plpgsql as $$
begin
    update content_totals total set bytes = total.bytes - removed.bytes
    from (select tenant, sum(size) as bytes from changed group by tenant) removed
    where total.tenant = removed.tenant;
    delete from content_totals where bytes <= 0 and tenant in (select tenant from changed);
    return null;
end
$$;

create trigger new_contents_are_counted after insert on contents
    referencing new table as changed for each statement execute function count_new_contents();
create trigger removed_contents_are_counted after delete on contents
    referencing old table as changed for each statement execute function count_removed_contents();

-- A content may only refer to an object that is being written, and that no sweep has claimed.
create function take_content_object() returns trigger language plpgsql as $$
begin
    delete from content_objects
    where tenant = new.tenant and hash = new.hash and object = new.payload and is_removable = 0;
    if not found then
        raise exception 'the object of a content was given up before the content was stored';
    end if;
    return null;
end
$$;

create function give_up_content_object() returns trigger language plpgsql as $$
begin
    insert into content_objects (tenant, hash, object, recorded_at, is_removable)
    values (old.tenant, old.hash, old.payload, clock_timestamp(), 1);
    return null;
end
$$;

create trigger contents_take_their_objects after insert on contents
    for each row when (new.encoding >= 64) execute function take_content_object();
create trigger contents_give_up_their_objects after delete on contents
    for each row when (old.encoding >= 64) execute function give_up_content_object();
