-- States of removed sessions, which go unless a session that is there has them.
create table removed_states (
    tenant text not null,
    hash bytea not null,
    -- Whether the transaction under way keeps commits from using it.
    is_held boolean not null,
    primary key (tenant, hash)
);
-- Removals lock the rows of sessions instead.
drop table if exists session_removal;
