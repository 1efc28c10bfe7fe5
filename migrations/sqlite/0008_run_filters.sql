-- Lists of runs by model. Metadata is compared row by row, as that of sessions.
create index runs_by_model on runs (tenant, model, run_id);
