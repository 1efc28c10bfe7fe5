-- Limits: what one tenant does costs another at most a share.

-- Runs of a higher level are leased first, whichever tenant's they are. The priority counts among the runs of a tenant and level.
-- A replica of the version before orders by its priority and turn; its runs get the level 0.
alter table run_queue add column level integer not null default 0;
drop index run_queue_by_turn;
create index run_queue_by_turn on run_queue (level desc, turn, run_id)
    where leased_until is null and (not is_held or control = 'cancel');
drop index run_queue_of_tenant;
create index run_queue_of_tenant on run_queue (tenant, level, turn) where leased_until is null;
create index run_queue_by_priority on run_queue (tenant, level, priority desc, run_id)
    where leased_until is null and (not is_held or control = 'cancel');

-- What the runs of the key's callers may do, as JSON with a version; null limits nothing.
alter table api_keys add column limits text;
