-- The agent instance of each session, so that contexts of different conversations can be equal.
--
-- Processes of the version before may run beside this one. They damage nothing; two limits hold.
-- They can't read sessions with a context that this version has written: requests for such a
-- session and runs that begin from it fail, and the log names the newer version. Their verification
-- reports faults in sessions of this version. So update all of them soon.

-- Null in sessions of earlier versions, whose contexts have both values.
alter table sessions add column agent_id blob;
alter table sessions add column agent_created_at integer;
