-- Sessions, runs, agents, keys, the queue, threads, webhooks, files, and commands for workers.
--
-- The tenant leads every key. Payloads are opaque bytes with a version and an encoding of their own:
-- 0 for no compression, 1 for a zstd frame with the dictionary of the service. They stand last, so
-- that reading the other columns leaves their pages alone. Times are microseconds since 1970 in UTC,
-- booleans are 0 and 1.

-- A branch is a line of segments. One that has a parent continues after that position.
create table history_branches (
    tenant text not null,
    branch_id blob not null,
    parent_branch_id blob,
    parent_position integer,
    primary key (tenant, branch_id)
) strict, without rowid;

-- The messages that one session added. The primary key arbitrates sessions that continue the same
-- one.
create table history_segments (
    branch_id blob not null,
    -- The session that added them, which may have been removed.
    session_id blob not null,
    position integer not null,
    first_index integer not null,
    message_count integer not null,
    schema_version integer not null,
    encoding integer not null,
    tenant text not null,
    payload blob not null,
    primary key (tenant, branch_id, position)
) strict;

-- Environments and contexts by the hash of their canonical JSON.
create table states (
    schema_version integer not null,
    encoding integer not null,
    tenant text not null,
    hash blob not null,
    -- environment, context
    kind text not null,
    -- The hash of the root directory of an environment's files. Null without files.
    tree blob,
    payload blob not null,
    primary key (tenant, hash)
) strict;
create index states_by_tree on states (tenant, tree) where kind = 'environment' and tree is not null;

-- States of removed sessions, which are deleted unless another session has them.
create table unused_states (
    tenant text not null,
    hash blob not null,
    -- Whether the transaction under way removes it unless it is needed.
    is_held integer not null,
    primary key (tenant, hash)
) strict;

create table sessions (
    session_id blob not null,
    parent_session_id blob,
    -- The root of its tree: itself, unless it has a parent. The root may have been removed.
    root_session_id blob not null,
    -- The other session of a merge, which may have been removed.
    merged_session_id blob,
    -- The session with whose environment it began, unless that is its parent's.
    environment_session_id blob,
    run_id blob,
    -- The session of the agent that started this one, committed with it.
    subagent_of blob,
    -- The agent instance. Contexts are stored without it, so that those of different conversations
    -- can be equal.
    agent_id blob not null,
    branch_id blob not null,
    position integer not null,
    depth integer not null,
    execution_count integer not null,
    message_count integer not null,
    -- The end of what the newest summary covers, as an index in the whole history.
    history_start integer not null,
    created_at integer not null,
    agent_created_at integer not null,
    schema_version integer not null,
    -- Whether it has other files than its parent.
    has_files_changed integer not null,
    tenant text not null,
    agent text not null,
    agent_version blob,
    -- completed, stopped, waiting: the status of its run when it was published.
    run_status text,
    -- The thread of the run that published it, or that a change of files moved to it.
    thread text,
    root_hash blob not null,
    environment_hash blob not null,
    context_hash blob not null,
    segment_hash blob not null,
    metadata text not null,
    -- The beginning of the newest message of the user, its own or inherited.
    preview text,
    primary key (tenant, session_id)
) strict;
-- Has the time, so that a list of trees reads nothing but the index.
create index sessions_by_root on sessions (tenant, root_session_id, session_id, created_at);
create index sessions_by_parent on sessions (tenant, parent_session_id) where parent_session_id is not null;
create index sessions_by_agent on sessions (tenant, agent, session_id);
create index sessions_by_thread on sessions (tenant, thread, session_id) where thread is not null;
create index sessions_by_subagent on sessions (tenant, subagent_of, session_id) where subagent_of is not null;
create index sessions_by_environment on sessions (tenant, environment_hash);
create index sessions_by_context on sessions (tenant, context_hash);

-- What is left of a session that was removed while others continue it: enough to find and verify
-- their line. As long as the row stands, so does the segment at its position.
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

create table runs (
    run_id blob not null,
    session_id blob not null,
    base_session_id blob,
    -- The run that answers its open calls.
    answer_run_id blob,
    input_tokens integer not null,
    output_tokens integer not null,
    cache_read_tokens integer not null,
    cache_write_tokens integer not null,
    reasoning_tokens integer not null,
    total_tokens integer not null,
    -- US dollars.
    cost real,
    -- What the parts of known price cost, where the whole cost is not known.
    cost_known_part real,
    step_count integer not null,
    -- The number of the run's last event, once it has ended.
    event_count integer not null,
    created_at integer not null,
    started_at integer,
    completed_at integer,
    -- When the last of its open calls expires that a person answers. Null if there is none, and not
    -- changed by an answer. A sweep sets it to null after that time.
    person_until integer,
    -- The same for the calls that the caller's program executes.
    client_until integer,
    -- How often a worker has begun it.
    attempts integer not null,
    -- How many of the last messages of the run's session are its output. Null if `output` has them.
    output_messages integer,
    schema_version integer not null,
    output_encoding integer not null,
    steps_encoding integer not null,
    -- Whether its end has moved the thread; for a repeated attempt to commit it.
    thread_moved integer,
    -- Whether it publishes its session. Otherwise `output` and `steps` have no messages.
    publishes integer not null,
    -- Whether its caller has deleted its response. Null stands for no.
    hidden integer,
    tenant text not null,
    thread text,
    agent text not null,
    agent_version blob,
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
    output blob not null,
    steps blob not null,
    primary key (tenant, run_id)
) strict;
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
    run_id blob not null,
    -- Its place among the runs of a level: tenants take turns.
    turn integer not null,
    -- Grows with each lease, and when one is given back.
    fence integer not null default 0,
    leased_until integer,
    enqueued_at integer not null,
    attempts integer not null default 0,
    -- Runs of a higher level are leased first, whichever tenant's they are. The priority counts
    -- among the runs of a tenant and level.
    level integer not null default 0,
    priority integer not null,
    schema_version integer not null,
    encoding integer not null,
    -- Waits for the run that is active on its thread, unless it was cancelled.
    is_held integer not null default 0,
    -- A fork reads its thread and does not move it.
    moves_thread integer not null default 1,
    -- Begins at the session to which its thread points then. Otherwise its record names its base.
    follows_thread integer not null default 1,
    tenant text not null,
    thread text,
    owner text,
    control text,
    request blob not null,
    primary key (tenant, run_id)
) strict;
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

-- Locks on PostgreSQL, where there is more than one writer; no rows here.
create table limited_tenants (
    tenant text not null primary key
) strict;

-- How far an execution has come, entry by entry. Deleted when its run has ended.
create table run_journal (
    run_id blob not null,
    sequence integer not null,
    schema_version integer not null,
    encoding integer not null,
    tenant text not null,
    -- Which execution: empty for the run's own agent.
    scope text not null,
    -- The hash of the root directory of the files of an environment in the entry.
    tree blob,
    payload blob not null,
    primary key (tenant, run_id, sequence)
) strict;
create index run_journal_by_tree on run_journal (tenant) where tree is not null;

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

-- Messages that were sent to active runs, by the sender's id.
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
    -- How many runs have moved it.
    run_count integer not null default 0,
    created_at integer not null,
    updated_at integer not null,
    tenant text not null,
    name text not null,
    title text,
    metadata text not null default '{}',
    primary key (tenant, name)
) strict;
create index threads_by_session on threads (tenant, session_id) where session_id is not null;

-- Messages to receivers outside, written with what they tell of.
create table webhook_deliveries (
    delivery_id blob not null,
    -- Null if it is not about a run.
    run_id blob,
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
    -- The host of the URL. Deliveries to one host share its slots.
    receiver text not null,
    secret text,
    -- The span of the run, if the receiver gets it.
    traceparent text,
    owner text,
    error text,
    payload blob not null,
    primary key (tenant, delivery_id)
) strict;
create index webhook_deliveries_by_due on webhook_deliveries (due_at) where status = 'pending';
-- What is due of one tenant and to one receiver is found without what others wait for, and a tenant
-- is passed over in one look.
create index webhook_deliveries_by_tenant on webhook_deliveries (tenant, receiver, due_at) where status = 'pending';
create index webhook_deliveries_by_age on webhook_deliveries (created_at) where status <> 'pending';
create index webhook_deliveries_by_run on webhook_deliveries (tenant, run_id, delivery_id);
create index webhook_deliveries_dead on webhook_deliveries (tenant, delivery_id) where status = 'dead';

-- What runs have spent and reserved of each limit. In microdollars.
create table spend_periods (
    spent integer not null default 0,
    reserved integer not null default 0,
    most integer not null,
    -- The part of the limit, in percent, about which a message was sent last.
    notified integer not null default 0,
    tenant text not null,
    -- `tenant`, `agent:NAME` or `key:ID`.
    scope text not null,
    -- `2026-12-01` for a day or `2026-12` for a month.
    period text not null,
    primary key (tenant, scope, period)
) strict;

-- What a run has reserved of each limit that counts it. A row whose reservation has expired stays
-- for some days, without an amount: its run may end after all.
create table spend_reservations (
    run_id blob not null,
    amount integer not null,
    expires_at integer,
    tenant text not null,
    scope text not null,
    period text not null,
    primary key (tenant, run_id, scope, period)
) strict;
create index spend_reservations_by_expiry on spend_reservations (expires_at);

create table agent_versions (
    created_at integer not null,
    schema_version integer not null,
    encoding integer not null,
    tenant text not null,
    version blob not null,
    name text not null,
    payload blob not null,
    primary key (tenant, version)
) strict;
create index agent_versions_by_name on agent_versions (tenant, name, created_at, version);

-- The current version of each name.
create table agents (
    tenant text not null,
    name text not null,
    version blob not null,
    primary key (tenant, name)
) strict, without rowid;

create table api_keys (
    key_id blob not null primary key,
    secret_hash blob not null unique,
    tenant text not null,
    scopes text not null,
    label text not null,
    -- What the runs of the key's callers may do, as JSON with a version; null limits nothing.
    limits text,
    created_at integer not null,
    revoked_at integer
) strict;

-- Sessions of the console: a browser has a secret in place of an API key, and so its scopes.
create table console_sessions (
    key_id blob not null,
    created_at integer not null,
    -- Use moves it, up to a limit after created_at.
    expires_at integer not null,
    secret_hash blob not null primary key,
    tenant text not null
) strict, without rowid;
create index console_sessions_by_key on console_sessions (key_id, created_at);
create index console_sessions_by_expiry on console_sessions (expires_at);

-- Tokens of identity providers that are refused: those of a subject that were issued before a time.
-- A revocation is removed once no such token can be valid any more.
create table token_revocations (
    issued_before integer not null,
    issuer text not null,
    subject text not null,
    primary key (issuer, subject)
) strict, without rowid;

-- The last entry of each chain of the audit log: of each tenant, and of the service, whose name is
-- empty. An act locks the row before it appends an entry. Rows of removed tenants stay.
create table audit_heads (
    number integer not null,
    chain text not null primary key,
    hash blob not null
) strict, without rowid;

-- Administrative acts. Each entry has the hash of the one before.
create table audit_entries (
    number integer not null,
    chain text not null,
    -- JSON, as it was hashed.
    entry text not null,
    previous_hash blob not null,
    hash blob not null,
    primary key (chain, number)
) strict, without rowid;

-- Files of workspaces by their hash: files, chunks of large files, and directories. They are written
-- before the session that refers to them. A content that no session and no journal refers to is
-- swept.
create table contents (
    -- When a run last wrote it, or found that it is stored already; a few minutes may be missing.
    written_at integer not null,
    -- Its bytes, uncompressed.
    size integer not null,
    -- 0: a file or a chunk; 1: the list of the chunks of a file; 2: a directory.
    kind integer not null,
    schema_version integer not null,
    -- 64 or more for a content in an object store. The rest is the encoding of the object, and the
    -- payload is the id of the object. Each object belongs to one row at most.
    encoding integer not null,
    tenant text not null,
    hash blob not null,
    payload blob not null,
    primary key (tenant, hash)
) strict;
create index contents_in_objects on contents (tenant) where encoding >= 64;

-- The tenants that may have contents to sweep. A tenant has a row from a change of its contents, or
-- a removal of an environment with files, until a sweep finds that all has come to rest.
create table content_sweeps (
    changed_at integer not null,
    swept_at integer not null,
    tenant text not null primary key
) strict;

-- The bytes of all contents of a tenant, uncompressed. A tenant without contents has no row.
create table content_totals (
    bytes integer not null,
    tenant text not null primary key
) strict;

-- The objects that no content refers to: those that are being written, and those whose content was
-- removed. A sweep deletes the object, then the row.
create table content_objects (
    recorded_at integer not null,
    -- More than 0 if no content may refer to the object any more.
    is_removable integer not null,
    tenant text not null,
    hash blob not null,
    object blob not null,
    primary key (tenant, hash, object)
) strict;
create index content_objects_by_time on content_objects (is_removable, recorded_at);

-- Commands of agents that workers run in other processes. A row exists from the call until the caller
-- has read how the command ended.
create table environment_commands (
    inserted_at integer not null,
    -- Until when somebody waits for the command. The waiting process renews it.
    awaited_until integer not null,
    -- Until when its worker has the command. The worker renews it. A command is taken once only.
    leased_until integer,
    command_id blob not null,
    execution_id blob not null,
    is_stopped integer not null,
    -- The worker that should run it, since it has the files.
    preferred_worker text,
    worker text,
    tenant text not null,
    request text not null,
    -- How it ended.
    outcome text,
    primary key (tenant, command_id)
) strict;
create index environment_commands_waiting on environment_commands (command_id) where worker is null;
create index environment_commands_running on environment_commands (tenant) where worker is not null and outcome is null;
create index environment_commands_by_awaited on environment_commands (awaited_until);

-- The output of commands, in pieces.
create table environment_command_output (
    position integer not null,
    command_id blob not null,
    tenant text not null,
    bytes blob not null,
    primary key (tenant, command_id, position),
    foreign key (tenant, command_id) references environment_commands on delete cascade
) strict;

-- Where a service that is asked whether it is ready tries to write. It has one row.
create table write_checks (filler blob not null) strict;

create trigger history_branches_are_immutable before update on history_branches
begin select raise(abort, 'rows of history_branches are immutable'); end;
create trigger history_segments_are_immutable before update on history_segments
begin select raise(abort, 'rows of history_segments are immutable'); end;
create trigger states_are_immutable before update on states
begin select raise(abort, 'rows of states are immutable'); end;
create trigger sessions_are_immutable before update on sessions
begin select raise(abort, 'rows of sessions are immutable'); end;
create trigger agent_versions_are_immutable before update on agent_versions
begin select raise(abort, 'rows of agent_versions are immutable'); end;
create trigger audit_heads_grow before update on audit_heads when new.number < old.number
begin select raise(abort, 'the head of an audit chain only grows'); end;
create trigger audit_heads_stay before delete on audit_heads
begin select raise(abort, 'rows of audit_heads are immutable'); end;
create trigger audit_entries_are_new before insert on audit_entries
when exists (select 1 from audit_entries where chain = new.chain and number = new.number)
begin select raise(abort, 'rows of audit_entries are immutable'); end;
create trigger audit_entries_are_immutable before update on audit_entries
begin select raise(abort, 'rows of audit_entries are immutable'); end;
create trigger audit_entries_stay before delete on audit_entries
begin select raise(abort, 'rows of audit_entries are immutable'); end;
create trigger contents_are_immutable
before update of size, kind, schema_version, encoding, tenant, hash, payload on contents
begin select raise(abort, 'rows of contents are immutable'); end;

create trigger new_contents_are_counted after insert on contents when new.size > 0
begin
    insert into content_totals (tenant, bytes) values (new.tenant, new.size)
    on conflict (tenant) do update set bytes = bytes + excluded.bytes;
end;

create trigger removed_contents_are_counted after delete on contents
begin
    update content_totals set bytes = bytes - old.size where tenant = old.tenant;
    delete from content_totals where tenant = old.tenant and bytes <= 0;
end;

-- A content may only refer to an object that is being written, and that no sweep has claimed.
create trigger contents_take_their_objects after insert on contents when new.encoding >= 64
begin
    select raise(abort, 'the object of a content was given up before the content was stored')
    where not exists (
        select 1 from content_objects
        where tenant = new.tenant and hash = new.hash and object = new.payload and is_removable = 0);
    delete from content_objects where tenant = new.tenant and hash = new.hash and object = new.payload;
end;

create trigger contents_give_up_their_objects after delete on contents when old.encoding >= 64
begin
    insert into content_objects (tenant, hash, object, recorded_at, is_removable)
    values (old.tenant, old.hash, old.payload, cast(round(unixepoch('subsec') * 1000) as integer) * 1000, 1);
end;
