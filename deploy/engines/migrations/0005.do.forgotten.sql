-- Whoever was forgotten and came back is somebody new. That they were forgotten is kept all the same: of a copy that is older,
-- everything about them has to go.
ALTER TABLE forgotten ADD COLUMN returned_at timestamptz;

-- There from the first day on, so that every copy of this database makes the same hashes. 244 of its 256 bits are random.
INSERT INTO forgetting_salt (salt)
SELECT decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex')
ON CONFLICT (is_only) DO NOTHING;
