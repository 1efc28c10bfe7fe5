-- Sessions and their history, runs, agents and keys. The tenant leads every key.
-- Payloads are opaque bytes with a version and an encoding of their own: 0 is raw, 1 is zstd. They stand last, so that
-- reading the other columns leaves their pages alone. Times are microseconds since 1970 in UTC.

-- A branch is a line of segments; one that has a parent goes on after that place.
create table history_branches (
    tenant text not null,
    branch_id blob not null,
    parent_branch_id blob,
    parent_position integer,
    primary key (tenant, branch_id),
    check ((parent_branch_id is null) = (parent_position is null))
) strict, without rowid;

-- The messages that one session added. The primary key arbitrates sessions that continue the same one.
create table history_segments (
    tenant text not null,
    branch_id blob not null,
    position integer not null,
    first_index integer not null,
    message_count integer not null,
    schema_version integer not null,
    encoding integer not null,
    payload blob not null,
    primary key (tenant, branch_id, position)
) strict;

-- Environments and contexts by the hash of their canonical JSON.
create table states (
    tenant text not null,
    hash blob not null,
    kind text not null check (kind in ('environment', 'context')),
    schema_version integer not null,
    encoding integer not null,
    payload blob not null,
    primary key (tenant, hash)
) strict;

create table sessions (
    tenant text not null,
    session_id blob not null,
    parent_session_id blob,
    run_id blob,
    branch_id blob not null,
    position integer not null,
    depth integer not null,
    execution_count integer not null,
    message_count integer not null,
    created_at integer not null,
    schema_version integer not null,
    agent text not null,
    agent_version blob,
    root_hash blob not null,
    environment_hash blob not null,
    context_hash blob not null,
    segment_hash blob not null,
    metadata text not null,
    primary key (tenant, session_id)
) strict;
create index sessions_by_parent on sessions (tenant, parent_session_id) where parent_session_id is not null;
create index sessions_by_agent on sessions (tenant, agent, session_id);

create table runs (
    tenant text not null,
    run_id blob not null,
    session_id blob not null,
    base_session_id blob,
    input_tokens integer not null,
    output_tokens integer not null,
    cache_read_tokens integer not null,
    cache_write_tokens integer not null,
    reasoning_tokens integer not null,
    total_tokens integer not null,
    -- US dollars.
    cost real,
    step_count integer not null,
    created_at integer not null,
    started_at integer,
    completed_at integer,
    schema_version integer not null,
    output_encoding integer not null,
    steps_encoding integer not null,
    agent text not null,
    agent_version blob,
    model text not null,
    mode text not null,
    status text not null,
    stop_reason text,
    error text,
    metadata text not null,
    output blob not null,
    steps blob not null,
    primary key (tenant, run_id)
) strict;
create unique index runs_by_session on runs (tenant, session_id);
create index runs_by_base on runs (tenant, base_session_id, run_id) where base_session_id is not null;
create index runs_by_agent on runs (tenant, agent, run_id);
create index runs_by_status on runs (tenant, status, run_id) where status <> 'completed';

create table agent_versions (
    tenant text not null,
    version blob not null,
    name text not null,
    created_at integer not null,
    schema_version integer not null,
    encoding integer not null,
    payload blob not null,
    primary key (tenant, version)
) strict;

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
    created_at integer not null,
    revoked_at integer
) strict;

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
