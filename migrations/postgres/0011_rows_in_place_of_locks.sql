-- Rows and a unique index decide what was decided under advisory locks.
--
-- Replicas of the version before go on beside this one, with three limits. Their removals fail,
-- since they would not see which states commits of this version use. A run that they accept on a
-- thread fails with an internal error if a replica of this version accepts one on the same thread
-- at the same moment. And one that they accept while a replica of this version ends the thread's
-- active run waits until a replica of this version accepts a run on the thread.

-- These wait for other transactions, so they come first: while they wait, nothing of the queue is
-- locked.
alter table removed_states rename to unused_states;
-- A commit locks the row of a state that is there already: it names the state in an `on conflict`
-- that updates no row.
create or replace trigger states_are_immutable before update on states
    for each row execute function refuse_update();

-- Should several runs be active on a thread, all but the first wait for it.
update run_queue set is_held = true
where moves_thread and not is_held and exists (
    select 1 from run_queue other
    where other.tenant = run_queue.tenant and other.thread = run_queue.thread and other.moves_thread
        and not other.is_held and other.run_id < run_queue.run_id);
-- A thread has one active run.
create unique index run_queue_active on run_queue (tenant, thread)
    where thread is not null and moves_thread and not is_held;

-- The tenants whose waiting runs are limited. A run of theirs is accepted with the row locked.
create table limited_tenants (
    tenant text not null primary key
);

-- Has one row. A removal locks it, so that removals go one by one.
create table removal_turn (
    turn smallint not null primary key check (turn = 1)
);
insert into removal_turn (turn) values (1);
