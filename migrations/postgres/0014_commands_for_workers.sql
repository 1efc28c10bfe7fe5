-- Commands of agents that workers run on other machines.
--
-- Replicas of the version before neither write nor read these tables.

-- A row exists from the call until the caller has read how the command ended.
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
