-- Where a service that is asked whether it is ready tries to write. It has one row.

create table write_checks (filler blob not null) strict;
