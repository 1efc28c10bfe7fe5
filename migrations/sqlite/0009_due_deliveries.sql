-- What is due to one receiver and of one tenant is found without what others wait for.
create index webhook_deliveries_by_receiver on webhook_deliveries (coalesce(receiver, ''), tenant, due_at)
    where status = 'pending';
