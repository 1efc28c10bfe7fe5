-- From where a session's history is needed to run, and whose subagent it belongs to.

-- The end of what the newest summary covers, as an index in the whole history. No session had a summary before.
alter table sessions add column history_start bigint not null default 0;

-- The session of the agent that started this one, committed with it.
alter table sessions add column subagent_of uuid;
create index sessions_by_subagent on sessions (tenant, subagent_of, session_id) where subagent_of is not null;
