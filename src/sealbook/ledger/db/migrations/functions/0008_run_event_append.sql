-- What everybody appends by. A fact is told by who may write what it tells of: so a loader, say, cannot tell of a
-- verdict. The caller is whoever is connected, or the role that it has set; this function acts as its owner.
CREATE FUNCTION run_event_append(events json)
RETURNS TABLE (seq bigint, persisted boolean, conflict boolean)
LANGUAGE plpgsql AS $$
DECLARE
    caller CONSTANT name := coalesce(nullif(current_setting('role'), 'none'), session_user);
    refused text;
BEGIN
    SELECT told.event_type INTO refused
    FROM (SELECT DISTINCT event->>'event_type' AS event_type FROM json_array_elements(events) AS event) AS told
    JOIN (VALUES
        ('PartitionJudged', 'attempt'),
        ('PartitionPublished', 'pointer'),
        ('PartitionHidden', 'pointer'),
        ('PartitionRequeued', 'override_log'),
        ('PartitionRolledBack', 'override_log'),
        ('PartitionCancelled', 'override_log')
    ) AS fact (event_type, written_to) ON fact.event_type = told.event_type
    WHERE NOT has_table_privilege(caller, fact.written_to, 'INSERT')
    LIMIT 1;
    IF refused IS NOT NULL THEN
        RAISE insufficient_privilege USING MESSAGE = 'permission denied to append ' || refused;
    END IF;
    RETURN QUERY SELECT * FROM run_event_append_unchecked(events);
END $$
