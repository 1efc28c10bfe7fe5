-- States of removed sessions, which go unless a session that is there has them.
create table removed_states (
    tenant text not null,
    hash blob not null,
    -- Whether the transaction under way removes it unless it is needed.
    is_held integer not null,
    primary key (tenant, hash)
) strict;
