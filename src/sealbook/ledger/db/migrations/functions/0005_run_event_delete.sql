-- Events go with their run, when it is retired, and never else.
CREATE OR REPLACE FUNCTION run_event_delete() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM run_head JOIN retired_run USING (run_id)
        WHERE run_head.number = OLD.run_number AND retired_run.last_seq >= OLD.run_seq
    ) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'events are never changed or deleted; retention removes whole runs'
        USING ERRCODE = 'restrict_violation';
END $$
