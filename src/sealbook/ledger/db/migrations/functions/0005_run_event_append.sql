-- The append authority. It says of each event its number, whether it is new, and, where its key is stored
-- already, whether that was with another payload. The events come in the order of run_id, and so are the heads
-- of their runs taken.
--
-- Heads are held until commit, and every statement in here sees what was committed before it began: a key that
-- another appender stored while this one waited is found.
CREATE OR REPLACE FUNCTION run_event_append(events json)
RETURNS TABLE (seq bigint, persisted boolean, conflict boolean)
LANGUAGE plpgsql AS $$
DECLARE
    event record;
    run text;
    run_number integer;
    last bigint;
    wake_up CONSTANT bigint := 'run_event'::regclass::oid::bigint << 32;
BEGIN
    FOR event IN SELECT * FROM json_to_recordset(events) AS given (
        run_id text, persisted_at timestamptz, emitted_at timestamptz, event_key uuid, event_type text,
        step_id text, logical_attempt_id text, plan_version text, partition text, event_data bytea, rest bytea)
    LOOP
        IF run IS DISTINCT FROM event.run_id THEN
            IF run IS NOT NULL THEN
                UPDATE run_head SET last_seq = last WHERE number = run_number;
            END IF;
            SELECT head.number, head.last_seq INTO run_number, last
            FROM run_head AS head WHERE head.run_id = event.run_id FOR UPDATE;
            IF NOT FOUND THEN
                PERFORM run_event_lock(ARRAY[event.run_id]);
                SELECT head.number, head.last_seq INTO run_number, last
                FROM run_head AS head WHERE head.run_id = event.run_id;
            END IF;
            IF run IS NULL THEN
                -- Positions are given out before commit, and commits may come in another order. So that the
                -- feed knows, an appender says after which position its own will be, in an advisory lock that
                -- it takes before the first and that goes with its transaction, however that ends. All such
                -- locks are shared, so none is refused.
                PERFORM pg_advisory_xact_lock_shared(
                    ('run_event_position_seq'::regclass::oid::bigint << 32)
                    | (coalesce(pg_sequence_last_value('run_event_position_seq'), 0) & 4294967295));
            END IF;
            run := event.run_id;
        END IF;
        SELECT known.run_seq,
            (known.event_data, known.partition) IS DISTINCT FROM (event.event_data, event.partition)
        INTO seq, conflict
        FROM run_event AS known
        WHERE known.event_key = event.event_key;
        persisted := NOT FOUND;
        IF persisted THEN
            last := last + 1;
            seq := last;
            conflict := false;
            INSERT INTO run_event (position, run_number, run_seq, persisted_at, emitted_at, event_key, event_type,
                step_id, logical_attempt_id, plan_version, partition, event_data, rest)
            VALUES (nextval('run_event_position_seq'), run_number, last, event.persisted_at, event.emitted_at,
                event.event_key, event.event_type, event.step_id, event.logical_attempt_id, event.plan_version,
                event.partition, event.event_data, event.rest);
        END IF;
        RETURN NEXT;
    END LOOP;
    UPDATE run_head SET last_seq = last WHERE number = run_number;

    -- A notification makes commits queue up behind each other, so it is sent only to followers who sleep; those
    -- hold the wake-up lock. It is tried and let go in one expression: meanwhile others take it for held.
    IF NOT (pg_try_advisory_lock(wake_up) AND pg_advisory_unlock(wake_up)) THEN
        PERFORM pg_notify('run_event', '');
    END IF;
END $$
