-- Hold the heads of runs until the transaction ends. All who lock take them in the order of run_id, so that none
-- waits for another in a circle; a run that has no head gets one when its turn comes.
CREATE FUNCTION run_event_lock(run_ids text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    run text;
BEGIN
    FOR run IN SELECT DISTINCT given.run_id COLLATE "C" FROM unnest(run_ids) AS given (run_id) ORDER BY 1 LOOP
        PERFORM FROM run_head WHERE run_id = run FOR UPDATE;
        IF NOT FOUND THEN
            INSERT INTO run_head (run_id, last_seq) VALUES (run, 0) ON CONFLICT DO NOTHING;
            PERFORM FROM run_head WHERE run_id = run FOR UPDATE;
        END IF;
    END LOOP;
END $$
