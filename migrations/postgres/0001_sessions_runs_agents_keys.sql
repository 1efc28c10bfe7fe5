-- Sessions and their history, runs, agents and keys. The tenant leads every key.
-- Payloads are opaque bytes with a version and an encoding of their own: 0 is raw, 1 is zstd.

-- A branch is a line of segments; one that has a parent goes on after that place.
create table history_branches (
    tenant text not null,
    branch_id uuid not null,
    parent_branch_id uuid,
    parent_position bigint,
    primary key (tenant, branch_id),
    check ((parent_branch_id is null) = (parent_position is null))
);

-- The messages that one session added. The primary key arbitrates sessions that continue the same one.
-- Payloads are compressed already, and in line they cost one row instead of several.
create table history_segments (
    branch_id uuid not null,
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

-- Environments and contexts by the hash of their canonical JSON.
create table states (
    schema_version smallint not null,
    encoding smallint not null,
    tenant text not null,
    hash bytea not null,
    kind text not null check (kind in ('environment', 'context')),
    payload bytea not null,
    primary key (tenant, hash)
) with (toast_tuple_target = 4080);
alter table states alter column payload set storage external;

create table sessions (
    session_id uuid not null,
    parent_session_id uuid,
    run_id uuid,
    branch_id uuid not null,
    position bigint not null,
    depth bigint not null,
    execution_count bigint not null,
    message_count bigint not null,
    created_at timestamptz not null,
    schema_version smallint not null,
    tenant text not null,
    agent text not null,
    agent_version bytea,
    root_hash bytea not null,
    environment_hash bytea not null,
    context_hash bytea not null,
    segment_hash bytea not null,
    -- JSON as text: jsonb would change numbers, which the root hash covers.
    metadata text not null,
    primary key (tenant, session_id)
);
create index sessions_by_parent on sessions (tenant, parent_session_id) where parent_session_id is not null;
create index sessions_by_agent on sessions (tenant, agent, session_id);
create index sessions_by_metadata on sessions using gin ((metadata::jsonb) jsonb_path_ops) where metadata <> '{}';

create table runs (
    run_id uuid not null,
    session_id uuid not null,
    base_session_id uuid,
    input_tokens bigint not null,
    output_tokens bigint not null,
    cache_read_tokens bigint not null,
    cache_write_tokens bigint not null,
    reasoning_tokens bigint not null,
    total_tokens bigint not null,
    -- US dollars.
    cost double precision,
    step_count bigint not null,
    created_at timestamptz not null,
    started_at timestamptz,
    completed_at timestamptz,
    schema_version smallint not null,
    output_encoding smallint not null,
    steps_encoding smallint not null,
    tenant text not null,
    agent text not null,
    agent_version bytea,
    model text not null,
    mode text not null,
    status text not null,
    stop_reason text,
    error text,
    metadata text not null,
    output bytea not null,
    steps bytea not null,
    primary key (tenant, run_id)
) with (toast_tuple_target = 4080);
alter table runs alter column output set storage external;
alter table runs alter column steps set storage external;
create unique index runs_by_session on runs (tenant, session_id);
create index runs_by_base on runs (tenant, base_session_id, run_id) where base_session_id is not null;
create index runs_by_agent on runs (tenant, agent, run_id);
create index runs_by_status on runs (tenant, status, run_id) where status <> 'completed';

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
    created_at timestamptz not null,
    revoked_at timestamptz
);

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
    for each statement execute function refuse_update();
create trigger sessions_are_immutable before update on sessions
    for each statement execute function refuse_update();
create trigger agent_versions_are_immutable before update on agent_versions
    for each statement execute function refuse_update();
