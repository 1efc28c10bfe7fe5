-- Runs whose open calls another run has answered have a status and name that run.
--
-- The two indexes have the new status in their condition. While they are built, runs can't be
-- written. Replicas of the version before can't read answered runs, so update all of them soon.

alter table runs add column answer_run_id uuid;

-- To give the calls back if the run that answers them ends without a session.
create index runs_by_answer on runs (tenant, answer_run_id) where answer_run_id is not null;

drop index runs_without_session_by_session;
create unique index runs_without_session_by_session on runs (tenant, session_id)
    where status not in ('completed', 'stopped', 'waiting', 'answered');
drop index runs_without_session_by_base;
create index runs_without_session_by_base on runs (tenant, base_session_id, run_id)
    where status not in ('completed', 'stopped', 'waiting', 'answered');
