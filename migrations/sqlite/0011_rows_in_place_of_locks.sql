-- A thread has one active run. Should several be, all but the first wait for it.
update run_queue set is_held = 1
where moves_thread and not is_held and exists (
    select 1 from run_queue other
    where other.tenant = run_queue.tenant and other.thread = run_queue.thread and other.moves_thread
        and not other.is_held and other.run_id < run_queue.run_id);
create unique index run_queue_active on run_queue (tenant, thread)
    where thread is not null and moves_thread and not is_held;

-- Locks on PostgreSQL, where there is more than one writer; no rows here.
create table limited_tenants (
    tenant text not null primary key
) strict;
alter table removed_states rename to unused_states;
