-- The append authority. It says of each event its number, whether it is new, and, where its key is stored
-- already, whether that was with another payload. The events come in the order of run_id, and so are the heads
-- of their runs taken.
--
-- Heads are held until commit, and every statement in here sees what was committed before it began: a key that
-- another appender stored while this one waited is found.
CREATE FUNCTION run_event_append(events json)
RETURNS TABLE (seq bigint, persisted boolean, conflict boolean)
LANGUAGE plpgsql AS $$
DECLARE
    event run_event;
    run text;
    last bigint;
    wake_up CONSTANT bigint := 'run_event'::regclass::oid::bigint << 32;
BEGIN
    FOR event IN SELECT * FROM json_populate_recordset(NULL::run_event, events) LOOP
        IF run IS DISTINCT FROM event.run_id THEN
            IF run IS NOT NULL THEN
                UPDATE run_head SET last_seq = last WHERE run_id = run;
            END IF;
            SELECT last_seq INTO last FROM run_head WHERE run_id = event.run_id FOR UPDATE;
            IF NOT FOUND THEN
                PERFORM run_event_lock(ARRAY[event.run_id]);
                SELECT last_seq INTO last FROM run_head WHERE run_id = event.run_id;
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
        event.event_data := coalesce(event.event_data, 'null');  -- a JSON null arrives as no value
        SELECT known.run_seq,
            (known.event_data::text, known.partition) IS DISTINCT FROM (event.event_data::text, event.partition)
        INTO seq, conflict
        FROM run_event AS known
        WHERE known.run_id = run AND known.idempotency_key = event.idempotency_key;
        persisted := NOT FOUND;
        IF persisted THEN
            last := last + 1;
            seq := last;
            conflict := false;
            event.run_seq := last;
            event.position := nextval('run_event_position_seq');
            INSERT INTO run_event VALUES (event.*);
        END IF;
        RETURN NEXT;
    END LOOP;
    UPDATE run_head SET last_seq = last WHERE run_id = run;

    -- A notification makes commits queue up behind each other, so it is sent only to followers who sleep; those
    -- hold the wake-up lock. It is tried and let go in one expression: meanwhile others take it for held.
    IF NOT (pg_try_advisory_lock(wake_up) AND pg_advisory_unlock(wake_up)) THEN
        PERFORM pg_notify('run_event', '');
    END IF;
END $$
