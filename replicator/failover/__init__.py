"""Role changes of a link: switchover, failover, failback; journalled, resumable, with evidence."""
