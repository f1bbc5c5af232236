-- A run is retired as a whole. Whoever counted its events before this row was written may be behind: it must
-- look again.
CREATE OR REPLACE FUNCTION retired_run_removes() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    retired integer;
BEGIN
    SELECT number INTO retired FROM run_head
    WHERE run_id = NEW.run_id AND last_seq = NEW.last_seq FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the run moved on while it was being retired' USING ERRCODE = 'serialization_failure';
    END IF;
    DELETE FROM run_event WHERE run_number = retired AND run_seq <= NEW.last_seq;
    RETURN NULL;
END $$
