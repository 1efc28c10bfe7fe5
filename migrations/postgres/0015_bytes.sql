-- The answer of a run is stored once, and indexes have only the rows that their queries need.
--
-- While the two indexes are built, runs and sessions can be neither read nor written. For a store
-- of many millions of runs, create them by hand before the update, with `create unique index
-- concurrently` and `create index concurrently`, and check that they are valid: this migration then
-- finds them. All other statements take a moment at any size, and no row is rewritten. If the
-- migration fails, all of it is undone, and it begins again.
--
-- Replicas of the version before may run beside this one, with two limits. They can't read runs
-- that this version accepts or ends, nor lists with such a run: they respond with an internal error
-- that names the version, and their workers leave these runs in the queue. And their sweeps and
-- removals read whole tables, since they need indexes that are gone.

-- In the order in which a commit locks them.
lock table sessions, history_branches, states, runs in access exclusive mode;

-- How many of the last messages of the run's session are its output. Null if `output` has them.
alter table runs add column output_messages smallint;

-- Only runs without a session need these. A run with a session is found by the session.
-- To find the run that has reserved a session id.
create unique index if not exists runs_without_session_by_session on runs (tenant, session_id)
    where status not in ('completed', 'stopped', 'waiting');
-- To list the runs that began at a session, and to find out whether a queued run begins there.
create index if not exists runs_without_session_by_base on runs (tenant, base_session_id, run_id)
    where status not in ('completed', 'stopped', 'waiting');
drop index runs_by_session;
drop index runs_by_base;

-- The ids of sessions begin with their age.
drop index sessions_by_age;

-- PostgreSQL parses a check again in each statement. The code that writes these columns has types
-- for them.
alter table states drop constraint if exists states_kind_check;
alter table history_branches drop constraint if exists history_branches_check;
