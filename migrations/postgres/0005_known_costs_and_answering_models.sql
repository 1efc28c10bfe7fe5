-- What the parts of known price cost, where the whole cost of a run is not known.
alter table runs add column cost_known_part double precision;
-- The model of the run's chain that answered last.
alter table runs add column answered_by text;
