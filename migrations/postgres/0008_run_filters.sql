-- Lists of runs by model, and by metadata like those of sessions.
create index runs_by_model on runs (tenant, model, run_id);
create index runs_by_metadata on runs using gin ((metadata::jsonb) jsonb_path_ops) where metadata <> '{}';
